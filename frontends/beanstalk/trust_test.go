package beanstalk

import (
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// counting counts the calls of a broker.
type counting struct {
	core.Broker
	done, opened int
}

func (c *counting) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	c.done++
	return c.Broker.Do(id, ops, into)
}

func (c *counting) Open(o core.ClientOptions) core.ClientID {
	c.opened++
	return c.Broker.Open(o)
}

// setupCounting opens a stage with o, and returns the broker's calls.
func setupCounting(t *testing.T, o Options, guard func(core.Broker) *access.Guard) (*frontendtest.Stage, *counting) {
	t.Helper()
	calls := &counting{}
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		calls.Broker = b
		return New(guard(calls), o)
	}, frontendtest.InMemory)
	return s, calls
}

func unrestricted(b core.Broker) *access.Guard { return access.Unrestricted(b, core.Beanstalk) }

func TestReserveOfManyShortLeasesAsksForOne(t *testing.T) {
	t.Parallel()
	s, calls := setupCounting(t, Options{}, unrestricted)
	c := s.Dial("worker")
	const jobs = 500
	for range jobs {
		c.Send("put 0 0 1 1\r\nx\r\n")
		c.ReadUntil("\r\n")
	}
	calls.done = 0
	for range jobs {
		c.Send("reserve-with-timeout 0\r\n")
		if line := c.ReadUntil("\r\n"); !strings.HasPrefix(line, "RESERVED") {
			t.Fatal(line)
		}
		c.ReadUntil("\r\n")
	}
	if calls.done > 10*jobs {
		t.Errorf("%d calls of the broker for %d reserves", calls.done, jobs)
	}
}

func TestDeletesOfUnleasedJobsAreAudited(t *testing.T) {
	t.Parallel()
	var noted []string
	s, _ := setupCounting(t, Options{Options: frontends.Options{
		Audit: func(c access.Change) { noted = append(noted, c.Action+" "+c.Target) },
	}}, unrestricted)
	c := s.Dial("worker")
	c.Send("put 0 0 60 1\r\nx\r\nput 1 0 60 1\r\ny\r\nreserve\r\ndelete 1\r\ndelete 2\r\n")
	c.Want("INSERTED 1\r\nINSERTED 2\r\nRESERVED 1 1\r\nx\r\nDELETED\r\nDELETED\r\n")
	if got := strings.Join(noted, ", "); got != "job.delete 2" {
		t.Errorf("noted: %q", got)
	}
}

func TestStatsWithoutRightsCostNothing(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	control.Load([]access.Entry{{Name: "root", Grants: []access.Grant{{Role: access.Admin}}}})
	s, calls := setupCounting(t, Options{}, func(b core.Broker) *access.Guard {
		return access.NewGuard(b, control, core.Beanstalk, "")
	})
	c := s.Dial("stranger")
	calls.opened = 0
	c.Send("stats\r\n")
	c.Want("UNKNOWN_COMMAND\r\n")
	if calls.opened > 0 {
		t.Errorf("%d clients were opened", calls.opened)
	}
}

// workerStage opens a stage whose clients may work for the tube own.
func workerStage(t *testing.T) (*frontendtest.Stage, *access.Control) {
	t.Helper()
	control, own := &access.Control{}, []string{"own"}
	control.Load([]access.Entry{{Name: "worker", Grants: []access.Grant{
		{Role: access.Consume, Queues: own}, {Role: access.Produce, Queues: own},
	}}})
	s, _ := setupCounting(t, Options{}, func(b core.Broker) *access.Guard {
		return access.NewGuard(b, control, core.Beanstalk, "worker")
	})
	return s, control
}

func TestWorkerThatDeletesItsJobIsNotRefused(t *testing.T) {
	t.Parallel()
	s, control := workerStage(t)
	c := s.Dial("worker")
	c.Send(
		"use own\r\nwatch own\r\nignore default\r\nput 0 0 1 1\r\nx\r\nput 1 0 1 1\r\ny\r\nreserve\r\ndelete 1\r\nreserve\r\n",
	)
	c.Want(
		"USING own\r\nWATCHING 2\r\nWATCHING 1\r\nINSERTED 1\r\nINSERTED 2\r\nRESERVED 1 1\r\nx\r\nDELETED\r\nRESERVED 2 1\r\ny\r\n",
	)
	if n := control.Refusals(core.Beanstalk); n != 0 {
		t.Errorf("%d refusals were counted", n)
	}
	s.Advance(2 * time.Second) // the lease ends
	c.Send("delete 2\r\nstats-tube own\r\n")
	c.Want("NOT_FOUND\r\nUNKNOWN_COMMAND\r\n")
}

func TestForbiddenTubesLookLikeMissingTubes(t *testing.T) {
	t.Parallel()
	s, _ := workerStage(t)
	core.DoOnce(s.Broker, core.Internal, &core.Submit{Job: &core.Job{Queue: "secret"}})
	c := s.Dial("worker")
	c.Send("pause-tube secret 1\r\npause-tube missing 1\r\n")
	c.Want("UNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\n")
}
