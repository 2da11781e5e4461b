package console

import (
	"net/url"
	"slices"
	"testing"

	"broker/core"
	"broker/operate/service"
)

// slowBroker holds jobs that are to become ready back until goOn is closed.
type slowBroker struct {
	core.Broker

	goOn  chan struct{}
	asked chan struct{} // gets a value each time that it is asked for that
}

func (b *slowBroker) Do(c core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	if slices.ContainsFunc(ops, enqueues) {
		b.asked <- struct{}{}
		<-b.goOn
	}
	return b.Broker.Do(c, ops, into)
}

// enqueues reports whether an operation, or a part of it, makes a job ready.
func enqueues(op core.Op) bool {
	switch op := op.(type) {
	case *core.Enqueue:
		return true
	case *core.Atomic:
		return slices.ContainsFunc(op.Ops, enqueues)
	}
	return false
}

func TestSlowChangeOfAJobIsMadeOnce(t *testing.T) {
	t.Parallel()
	slow := &slowBroker{goOn: make(chan struct{}), asked: make(chan struct{}, 2)}
	f := setupOn(t, func(b core.Broker) core.Broker {
		slow.Broker = b
		return slow
	})
	id := f.submits(service.Submission{Queue: "mail", DelayS: 3600})
	answered := make(chan struct{})
	go func() {
		f.post("/jobs/"+id, url.Values{"do": {"retry"}})
		close(answered)
	}()
	<-slow.asked
	select {
	case <-answered:
	case <-slow.asked:
		t.Error("the change is made again while it is under way")
	}
	close(slow.goOn)
	<-answered
}
