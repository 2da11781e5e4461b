package crossprotocol

import (
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/frontends"
	"broker/frontends/beanstalk"
	"broker/frontends/frontendtest"
)

// beanstalkOf adds a front-end for clients of beanstalkd.
func (e *env) beanstalkOf() *frontendtest.Stage {
	return frontendtest.NewStage(e.t, e.workq.Broker, e.workq.Clock, func(b core.Broker) frontends.Frontend {
		return beanstalk.New(b, beanstalk.Options{})
	}, nil)
}

// A Workq client waits for the result of its job, whatever the worker does with it.
func TestBeanstalkWorkerRunsJobsOfWorkqClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ commands, replies, state, outcome string }{
		{"delete 1\r\n", "DELETED\r\n", "done", "+OK 1\r\n" + id + " 1 0\r\n\r\n"},
		{"bury 1 1024\r\n", "BURIED\r\n", "dead", "+OK 1\r\n" + id + " 0 0\r\n\r\n"},
		{"release 1 1024 0\r\n", "RELEASED\r\n", "ready", ""},
		{"release 1 5 9\r\n", "RELEASED\r\n", "scheduled", ""},
	} {
		e := newEnv(t)
		client := e.workq.Dial("client")
		client.Send("add " + id + " q 60000 600000 5 -priority=7\r\nhello\r\nresult " + id + " 60000\r\n")
		client.Want("+OK\r\n")
		worker := e.beanstalkOf().Dial("worker")
		worker.Send("watch q\r\nreserve\r\n")
		worker.Want("WATCHING 2\r\nRESERVED 1 5\r\nhello\r\n")
		worker.Send("stats-job 1\r\n")
		if stats := worker.Rest(); !strings.Contains(string(stats), "\npri: 1017\n") || !strings.Contains(string(stats), "\nttr: 60\n") {
			t.Errorf("%s", stats)
		}
		worker.Send(c.commands)
		worker.Want(c.replies)
		if got := e.state(1); got != c.state {
			t.Errorf("after %q the job is %s, want %s", c.commands, got, c.state)
		}
		e.advance(time.Second)
		if got := string(client.Rest()); got != c.outcome {
			t.Errorf("after %q the client has %q, want %q", c.commands, got, c.outcome)
		}
	}
}

// Jobs of beanstalkd clients are plain bytes to others, and keep their own rules in their hands.
func TestOtherWorkersRunJobsOfBeanstalkClients(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	client := e.beanstalkOf().Dial("client")
	client.Send("use q\r\nput 1020 0 60 5\r\nhello\r\nput 1020 0 60 5\r\nagain\r\n")
	client.Want("USING q\r\nINSERTED 1\r\nINSERTED 2\r\n")
	workq := e.workq.Dial("worker")
	workq.Send("lease q 0\r\n")
	workq.Want("+OK 1\r\n" + core.Alias(1) + " q 60000 5\r\nhello\r\n")
	client.Send("delete 1\r\nstats-job 1\r\n")
	client.Want("NOT_FOUND\r\n")
	if stats := string(client.Rest()); !strings.Contains(stats, "state: reserved\npri: 1020\n") {
		t.Error(stats)
	}
	workq.Send("fail " + core.Alias(1) + " 2\r\nno\r\n")
	workq.Want("+OK\r\n")
	client.Send("peek-buried\r\nkick 5\r\npeek-ready\r\n")
	client.Want("FOUND 1 5\r\nhello\r\nKICKED 1\r\nFOUND 1 5\r\nhello\r\n")
	workq.Send("lease q 0\r\ncomplete " + core.Alias(1) + " 0\r\n\r\n")
	workq.Want("+OK 1\r\n" + core.Alias(1) + " q 60000 5\r\nhello\r\n+OK\r\n")
	client.Send("peek 1\r\npeek-ready\r\n")
	client.Want("NOT_FOUND\r\nFOUND 2 5\r\nagain\r\n")
}
