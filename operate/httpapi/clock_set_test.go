package httpapi

import (
	"context"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/operate/service"
)

// setBack is a broker whose clock is set back by an hour after it has admitted a job.
type setBack struct {
	core.Broker
	clock *coretest.Clock
}

// Do implements core.Broker.
func (b setBack) Do(client core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	into = b.Broker.Do(client, ops, into)
	for _, op := range ops {
		if _, submits := op.(*core.Submit); submits {
			b.clock.Advance(-time.Hour)
		}
	}
	return into
}

func TestSubmissionDoesNotWaitForAClockThatWasSetBack(t *testing.T) {
	t.Parallel()
	b := &setBack{clock: coretest.NewClock()}
	f := setupService(t, Options{}, engine.Options{}, func(o *service.Options) {
		b.Broker, o.Broker = o.Broker, b
	})
	b.clock = f.clock
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Second, context.DeadlineExceeded)
	defer cancel()
	done := make(chan int, 1)
	go func() {
		done <- f.call("POST", "/api/v1/jobs", `{"queue": "mail", "body": "x"}`).status
		done <- f.call("POST", "/api/v1/jobs?wait=0.05", `{"queue": "mail", "body": "y"}`).status
	}()
	for range 2 {
		select {
		case status := <-done:
			if status != 201 {
				t.Errorf("status %d", status)
			}
		case <-ctx.Done():
			t.Fatal("the submission waits")
		}
	}
}
