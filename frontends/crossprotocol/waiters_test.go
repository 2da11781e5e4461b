package crossprotocol

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/frontends/frontendtest"
)

// waitingWorker waits again as soon as it has finished a job.
type waitingWorker struct {
	name string
	wait func()                // starts to wait
	take func() (bool, string) // finishes the job that has arrived, if any, and returns its body
	jobs int
}

func (e *env) gearmanWaiter(name string) *waitingWorker {
	c := e.dial(e.gearman)
	c.SendBytes(packet(canDo, queue))
	s := &waitingWorker{name: name}
	s.wait = func() {
		c.SendBytes(packet(grabJobUniq))
		e.one(c, noJob)
		c.SendBytes(packet(preSleep))
	}
	s.take = func() (bool, string) {
		if len(c.Rest()) == 0 {
			return false, ""
		}
		c.SendBytes(packet(grabJobUniq)) // it was woken
		got := e.one(c, jobAssignUniq)
		c.SendBytes(packet(workComplete, got.fields[0], ""))
		return true, got.fields[3]
	}
	return s
}

func (e *env) faktoryWaiter(name string) *waitingWorker {
	c := e.dialFaktory(name)
	s := &waitingWorker{name: name}
	s.wait = func() { c.Send("FETCH " + queue + "\r\n") }
	s.take = func() (bool, string) {
		text := string(c.Rest())
		if text == "" {
			return false, ""
		}
		id := between(text, `"jid":"`, `"`)
		c.Send(fmt.Sprintf("ACK {\"jid\":%q}\r\n", id))
		c.Want("+OK\r\n")
		return true, between(text, `"args":["`, `"`)
	}
	return s
}

func (e *env) workqWaiter(name string) *waitingWorker {
	c := e.dial(e.workq)
	s := &waitingWorker{name: name}
	s.wait = func() { c.Send("lease " + queue + " 86400000\r\n") }
	s.take = func() (bool, string) {
		text := string(c.Rest())
		if text == "" {
			return false, ""
		}
		lines := strings.Split(text, "\r\n")
		c.Send(fmt.Sprintf("complete %s 0\r\n\r\n", strings.Fields(lines[1])[0]))
		c.Want("+OK\r\n")
		return true, strings.Trim(lines[2], `[]"`)
	}
	return s
}

// between returns the part of text between from and to.
func between(text, from, to string) string {
	_, rest, _ := strings.Cut(text, from)
	middle, _, _ := strings.Cut(rest, to)
	return middle
}

// TestLongestWaitingWorkerGetsTheJob submits 100,000 jobs of every origin, one at a time, to nine workers of three
// protocols that wait again after each job. Each job must go to the worker that has waited longest.
func TestLongestWaitingWorkerGetsTheJob(t *testing.T) {
	t.Parallel()
	e := newEnv(t, frontendtest.InMemory)
	var line []*waitingWorker // longest waiting first
	for i := range 3 {
		line = append(line, e.gearmanWaiter(fmt.Sprint("gearman-", i)), e.faktoryWaiter(fmt.Sprint("faktory-", i)),
			e.workqWaiter(fmt.Sprint("workq-", i)))
	}
	all := append([]*waitingWorker(nil), line...)
	for _, s := range line {
		s.wait()
	}
	wq, g, f := e.dial(e.workq), e.dial(e.gearman), e.dialFaktory("")
	const jobs = 100_000
	for n := range jobs {
		body := fmt.Sprint("job-", n)
		switch n % 3 {
		case 0:
			wq.Send(fmt.Sprintf("add %s %s 60000 3600000 %d\r\n%s\r\n", id4(n), queue, len(body), body))
			wq.Want("+OK\r\n")
		case 1:
			g.SendBytes(packet(submitJobBg, queue, "", body))
			e.one(g, jobCreated)
		default:
			f.Send(fmt.Sprintf("PUSH {\"jid\":%q,\"jobtype\":\"T\",\"queue\":%q,\"args\":[%q]}\r\n", jid(n), queue,
				body))
			f.Want("+OK\r\n")
		}
		turn := line[0]
		came, got := turn.take()
		if !came || strings.Trim(got, `[]"`) != body {
			t.Fatalf("job %d: %s has waited longest, and got %v %q", n, turn.name, came, got)
		}
		turn.jobs++
		line = append(line[1:], turn)
		turn.wait()
		if n%10_000 == 0 {
			line = e.refetch(line)
		}
	}
	for _, s := range all {
		if s.jobs < jobs/len(all)-10 {
			t.Errorf("%s got %d jobs of %d", s.name, s.jobs, jobs)
		}
		if came, body := s.take(); came {
			t.Errorf("%s got %q after the last job", s.name, body)
		}
	}
	if left := e.do(&core.ReadStats{}).Stats.Jobs; left[core.Ready]+left[core.Leased] != 0 {
		t.Errorf("jobs are left: %v", left)
	}
}

// refetch waits until FETCH has timed out. The Faktory workers fetch again and are then last in line.
func (e *env) refetch(line []*waitingWorker) []*waitingWorker {
	e.t.Helper()
	e.advance(2100 * time.Millisecond)
	var waiting, again []*waitingWorker
	for _, s := range line {
		if !strings.HasPrefix(s.name, "faktory") {
			waiting = append(waiting, s)
			continue
		}
		if came, _ := s.take(); !came {
			e.t.Fatalf("%s waits longer than two seconds", s.name)
		}
		again = append(again, s)
	}
	for _, s := range again {
		s.wait()
	}
	return append(waiting, again...)
}

// TestNoWorkerKindStarvesUnderLoad keeps one worker of each protocol busy.
func TestNoWorkerKindStarvesUnderLoad(t *testing.T) {
	t.Parallel()
	e := newEnv(t, frontendtest.InMemory)
	workers := []*waitingWorker{e.gearmanWaiter("gearman"), e.faktoryWaiter("faktory"), e.workqWaiter("workq")}
	for _, s := range workers {
		s.wait()
	}
	seen := make(map[string]int)
	n := 0
	for range 2000 {
		for range 3 { // one for each worker
			e.do(&core.Submit{Job: &core.Job{Queue: queue, Body: fmt.Append(nil, "job-", n), Origin: core.Gearman}})
			n++
		}
		for _, s := range workers {
			came, body := s.take()
			if !came {
				t.Fatalf("%s got none of the three jobs", s.name)
			}
			seen[body]++
			s.wait()
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d jobs were done", len(seen), n)
	}
}
