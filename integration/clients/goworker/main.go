// Command goworker is a Faktory worker on the official Go library: goworker NAME=BEHAVIOUR...; the server's address
// comes from FAKTORY_URL. NAME is the queue and, after a colon, the job's type where it has another name. A queue may
// have a weight, as in mail*5:Send=echo: then the queues are tried in an order drawn anew for each job.
//
// Behaviours: echo, fail, hold (says that it has the job and never finishes), shift (takes custom.ms milliseconds of
// the job, fails custom.fails times, and says when it is done).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	faktory "github.com/contribsys/faktory/client"
	worker "github.com/contribsys/faktory_worker_go"
)

// event is one line of output; the tests read these.
type event struct {
	Event string `json:"event"`
	Func  string `json:"func,omitempty"`
	ID    string `json:"id,omitempty"`
	Data  []byte `json:"data,omitempty"`
	At    int64  `json:"at,omitempty"` // milliseconds of Unix time
}

// starts is how often the program tries to start. The library connects within a second and says HELLO within two, or
// gives up; the machine may be busy.
const starts = 5

func main() {
	for range starts {
		log.Print(run(os.Args[1:]))
		time.Sleep(time.Second)
	}
	os.Exit(1)
}

// run returns only if it could not start: the library ends the process.
func run(pairs []string) error {
	log.SetOutput(os.Stderr)
	manager := worker.NewManager()
	manager.Concurrency = 8
	weights := make(map[string]int)
	var queues []string
	for _, pair := range pairs {
		name, behaviour, _ := strings.Cut(pair, "=")
		queue, jobType, found := strings.Cut(name, ":")
		if !found {
			jobType, _, _ = strings.Cut(queue, "*")
		}
		perform, err := performer(behaviour)
		if err != nil {
			return err
		}
		queue, weight, weighted := strings.Cut(queue, "*")
		if weighted {
			if weights[queue], err = strconv.Atoi(weight); err != nil {
				return fmt.Errorf("weight of %s: %w", queue, err)
			}
		}
		queues = append(queues, queue)
		manager.Register(jobType, perform)
	}
	if len(weights) > 0 {
		manager.ProcessWeightedPriorityQueues(weights)
	} else {
		manager.ProcessStrictPriorityQueues(queues...)
	}
	manager.Use(func(ctx context.Context, job *faktory.Job, next func(context.Context) error) error {
		return next(context.WithValue(ctx, jobKey{}, job))
	})
	manager.On(worker.Startup, func(*worker.Manager) error { return say(event{Event: "ready"}) })
	manager.On(worker.Shutdown, func(*worker.Manager) error { return say(event{Event: "shutdown"}) })
	return manager.Run()
}

func performer(behaviour string) (worker.Perform, error) {
	switch behaviour {
	case "echo", "fail", "hold", "shift":
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
		case "shift":
			return shift(ctx.Value(jobKey{}).(*faktory.Job))
		}
		return nil
	}, nil
}

// jobKey is where a job's context has the job as it came.
type jobKey struct{}

// shift does what the job's custom object asks for. The server counts the failures.
func shift(job *faktory.Job) error {
	if ms, ok := job.GetCustom("ms"); ok {
		time.Sleep(time.Duration(ms.(float64)) * time.Millisecond)
	}
	failed := 0.0
	if job.Failure != nil {
		failed = float64(job.Failure.RetryCount) + 1
	}
	if fails, ok := job.GetCustom("fails"); ok && failed < fails.(float64) {
		return fmt.Errorf("failure %v of %v", failed+1, fails)
	}
	return say(event{Event: "done", ID: job.Jid})
}

// say writes a line with one write, so that the reader never sees a part of it.
func say(e event) error {
	e.At = time.Now().UnixMilli()
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(line, '\n'))
	return err
}
