// Command goworker is a Faktory worker on the official Go library: goworker NAME=BEHAVIOUR...; the server's address
// comes from FAKTORY_URL. NAME is the queue and, after a colon, the job's type where it has another name.
//
// Behaviours: echo, fail, hold (says that it has the job and never finishes).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	worker "github.com/contribsys/faktory_worker_go"
)

// event is one line of output; the tests read these.
type event struct {
	Event string `json:"event"`
	Func  string `json:"func,omitempty"`
	ID    string `json:"id,omitempty"`
	Data  []byte `json:"data,omitempty"`
}

func main() {
	log.Fatal(run(os.Args[1:]))
}

// run comes back only if it could not start: the library ends the process itself.
func run(pairs []string) error {
	log.SetOutput(os.Stderr)
	manager := worker.NewManager()
	manager.Concurrency = 8
	var queues []string
	for _, pair := range pairs {
		name, behaviour, _ := strings.Cut(pair, "=")
		queue, jobType, found := strings.Cut(name, ":")
		if !found {
			jobType = queue
		}
		perform, err := performer(behaviour)
		if err != nil {
			return err
		}
		queues = append(queues, queue)
		manager.Register(jobType, perform)
	}
	manager.ProcessStrictPriorityQueues(queues...)
	manager.On(worker.Startup, func(*worker.Manager) error { return say(event{Event: "ready"}) })
	manager.On(worker.Shutdown, func(*worker.Manager) error { return say(event{Event: "shutdown"}) })
	return manager.Run()
}

func performer(behaviour string) (worker.Perform, error) {
	switch behaviour {
	case "echo", "fail", "hold":
	default:
		return nil, fmt.Errorf("unknown behaviour %q", behaviour)
	}
	return func(ctx context.Context, args ...any) error {
		help := worker.HelperFor(ctx)
		data, err := json.Marshal(args)
		if err != nil {
			return err
		}
		if err := say(event{Event: "job", Func: help.JobType(), ID: help.Jid(), Data: data}); err != nil {
			return err
		}
		switch behaviour {
		case "fail":
			return errors.New("broken: " + string(data))
		case "hold":
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}, nil
}

// say writes one line in one write, for the reader must never see half of one.
func say(e event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(line, '\n'))
	return err
}
