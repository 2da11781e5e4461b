// Command worker works on the queue greet until it is stopped: go run ./worker
package main

import (
	"context"
	"fmt"
	"log"

	worker "github.com/contribsys/faktory_worker_go"
)

func greet(_ context.Context, args ...any) error {
	if len(args) != 1 {
		return fmt.Errorf("expected a name, got %d arguments", len(args))
	}
	fmt.Println("Hello,", args[0])
	return nil
}

func main() {
	manager := worker.NewManager() // FAKTORY_URL, or the default port
	manager.Register("greet", greet)
	manager.ProcessStrictPriorityQueues("greet")
	log.Fatal(manager.Run())
}
