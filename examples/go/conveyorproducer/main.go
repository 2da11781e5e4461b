// Command conveyorproducer submits a job to the queue greet as Conveyor's client does: go run ./conveyorproducer [NAME]
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"example/conveyor"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

func main() {
	name := "Go"
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	payload, err := json.Marshal([]string{name})
	if err != nil {
		log.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: conveyor.Address()})
	id := uuid.NewString()
	if err := client.LPush(context.Background(), "conv:queue:"+conveyor.Queue,
		conveyor.Encode(id, string(payload))).Err(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("submitted", id)
}
