// Command conveyorworker works on the queue greet with the steps of Conveyor's worker until it is stopped: go run
// ./conveyorworker
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"example/conveyor"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// worker is the name under which this process holds jobs.
var worker = uuid.NewString()

func main() {
	client := redis.NewClient(&redis.Options{Addr: conveyor.Address()})
	ctx := context.Background()
	go func() { // without a sign of life for a minute, the jobs of the worker go to others
		for range time.Tick(15 * time.Second) {
			client.ZAdd(ctx, "conv:workers:active", redis.Z{Score: float64(time.Now().Unix()), Member: worker})
		}
	}()
	for {
		if err := work(ctx, client); err != nil { // the broker may be restarted
			log.Println("trying again in a second:", err)
			time.Sleep(time.Second)
		}
	}
}

// work takes a job, runs it and closes it.
func work(ctx context.Context, client *redis.Client) error {
	popped, err := client.BRPop(ctx, 2*time.Second, "conv:queue:"+conveyor.Queue).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return err
	}
	raw := popped[1]
	id, payload := conveyor.Decode([]byte(raw))
	// From here on the job is the worker's, whatever happens to its connection.
	if err := client.SAdd(ctx, "conv:worker:active:"+worker, id).Err(); err != nil {
		return err
	}
	var args []string // whatever the protocol of the producer
	if err := json.Unmarshal([]byte(payload), &args); err != nil || len(args) != 1 {
		log.Printf("%s is not an array of one name", payload)
		return fail(ctx, client, id, raw)
	}
	fmt.Println("Hello,", args[0])
	return client.SRem(ctx, "conv:worker:active:"+worker, id).Err()
}

// fail puts a job aside as failed finally.
func fail(ctx context.Context, client *redis.Client, id, raw string) error {
	p := client.Pipeline()
	p.Del(ctx, "conv:job:"+id)
	p.SRem(ctx, "conv:jobs:active", id)
	p.LPush(ctx, "conv:failed", raw)
	_, err := p.Exec(ctx)
	return err
}
