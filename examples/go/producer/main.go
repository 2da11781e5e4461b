// Command producer submits a job to the queue greet: go run ./producer [NAME]
package main

import (
	"fmt"
	"log"
	"os"

	faktory "github.com/contribsys/faktory/client"
)

func main() {
	client, err := faktory.Open() // FAKTORY_URL, or the default port
	if err != nil {
		log.Fatal(err)
	}
	name := "Go"
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	job := faktory.NewJob("greet", name)
	job.Queue = "greet"
	if err := client.Push(job); err != nil {
		log.Fatal(err)
	}
	fmt.Println("submitted", job.Jid)
}
