package hostile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
	"broker/operate/hostile"
)

// judged opens a stage with a hostile broker.
func judged(
	t testing.TB, rates string, seed uint64, front func(core.Broker) frontends.Frontend,
) (*frontendtest.Stage, *hostile.Log) {
	t.Helper()
	r, err := hostile.ParseRates(rates)
	if err != nil {
		t.Fatal(err)
	}
	var log *hostile.Log
	stage := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		log = hostile.NewLog(seed, r, nil)
		h := hostile.New(b, hostile.Options{Log: log})
		return h.Frontend(front(h))
	}, frontendtest.InMemory)
	return stage, log
}

// findings are a verdict in one line.
func findings(v *hostile.Verdict) string {
	var all []string
	if v.Running > 0 {
		all = append(all, fmt.Sprintf("running %d", v.Running))
	}
	for _, kind := range []struct {
		name string
		list []hostile.Finding
	}{
		{"different", v.Different},
		{"late", v.Late},
		{"never", v.NeverAcked},
		{"forgotten", v.Forgotten},
		{"again", v.CompletedAgain},
	} {
		for _, f := range kind.list {
			all = append(all, kind.name+": "+f.Detail)
		}
	}
	return strings.Join(all, " | ")
}

// TestWorkersAreJudged plays workers of one job with a lease of nine seconds. A word is what worker a or b sends, or a
// time that passes.
func TestWorkersAreJudged(t *testing.T) {
	t.Parallel()
	const job = id + "1"
	say := map[string]string{
		"take": "lease ping 0\r\n", "fail": "fail " + job + " 1\r\nx\r\n",
		"done": "complete " + job + " 3\r\none\r\n", "other": "complete " + job + " 3\r\ntwo\r\n",
	}
	const (
		again     = "again: completed 2 times; deliveries: 2"
		late      = "late: completed after its lease was lost; deliveries: 2 | " + again
		different = "different: completed with a result (3 B), then with another (3 B); deliveries: 2"
		never     = "never: taken, and not mentioned again; deliveries: 1"
	)
	for name, this := range map[string]struct {
		rates, script  string
		running, ended string // while the broker runs, and after it
	}{
		"right":          {script: "a take a done"},
		"second try":     {script: "a take a fail b take b done"},
		"idempotent":     {rates: "duplicate=1", script: "a take a done b take b done", ended: again},
		"not idempotent": {rates: "duplicate=1", script: "a take a done b take b other", ended: different},
		"refuses a second run": {
			rates: "duplicate=1", script: "a take a done b take b fail",
			ended: "different: completed with a result (3 B), then failed; deliveries: 2",
		},
		"slow":              {script: "a take 10s b take b done a done", ended: late},
		"slow and first":    {script: "a take 10s b take a done b done", ended: late},
		"slow and alone":    {script: "a take 10s a fail"},
		"lease ended early": {rates: "expire=1", script: "a take 1s b take b done a done", ended: again},
		"other result":      {rates: "expire=1", script: "a take 1s b take b done a other", ended: different},
		"forgets": {
			script: "a take 10s b take b done", ended: "forgotten: taken, and not mentioned again; deliveries: 2",
		},
		"forgets, excused": {rates: "expire=1", script: "a take 1s b take b done"},
		"never says":       {script: "a take 10s", ended: never},
		"still runs":       {script: "a take 1s", running: "running 1", ended: never},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stage, log := judged(t, this.rates, 7, newWorkq)
			workers := map[string]*frontendtest.Client{"a": stage.Dial("a"), "b": stage.Dial("b")}
			producer := stage.Dial("producer")
			producer.Send("add " + job + " ping 9000 600000 1 -max-attempts=9\r\nx\r\n")
			producer.Rest()
			for words := strings.Fields(this.script); len(words) > 0; {
				if d, err := time.ParseDuration(words[0]); err == nil {
					stage.Advance(d)
					words = words[1:]
					continue
				}
				workers[words[0]].Send(say[words[1]])
				workers[words[0]].Rest()
				words = words[2:]
			}
			running := this.running
			if running == "" {
				running = this.ended
			}
			if got := findings(log.Verdict()); got != running {
				t.Errorf("while it runs: got %q, want %q", got, running)
			}
			log.Stopped()
			v := log.Verdict()
			if got := findings(v); got != this.ended {
				t.Errorf("at the end: got %q, want %q", got, this.ended)
			}
			mistakes := this.ended != "" && !strings.HasPrefix(this.ended, "again")
			if v.Passed() == mistakes || v.Delivered != 1 {
				t.Errorf("passed %v, %d delivered", v.Passed(), v.Delivered)
			}
		})
	}
}

// TestIdempotentWorkerPassesAndAnotherFails lets two workers meet many faults: one has the same result in each run of a
// job, the other counts its runs.
func TestIdempotentWorkerPassesAndAnotherFails(t *testing.T) {
	t.Parallel()
	const jobs = 100
	run := func(counts bool) *hostile.Verdict {
		stage, log := judged(t, "duplicate=0.2,late=0.1,drop=0.1,expire=0.1,reorder=0.2", 7, newWorkq)
		producer := stage.Dial("producer")
		for i := range jobs {
			for producer.Closed() {
				producer = stage.Dial("producer")
			}
			producer.Send(fmt.Sprintf("add %s%04d ping 9000 6000000 1 -max-attempts=99\r\nx\r\n", id[:len(id)-3], i))
			producer.Rest()
			stage.Advance(2 * time.Second)
		}
		worker, runs, idle := stage.Dial("worker"), map[string]int{}, 0
		for idle < 5 {
			if worker.Closed() {
				worker = stage.Dial("worker")
			}
			worker.Send("lease ping 0\r\n")
			stage.Advance(3 * time.Second) // until a late delivery comes
			lines := strings.Split(string(worker.Rest()), "\r\n")
			if len(lines) < 3 {
				idle++
				stage.Advance(9 * time.Second) // until the lease of a job that did not arrive ends
				continue
			}
			idle = 0
			job := strings.Fields(lines[1])[0]
			result := "1"
			if runs[job]++; counts {
				result = fmt.Sprint(runs[job])
			}
			worker.Send("complete " + job + " 1\r\n" + result + "\r\n")
			stage.Advance(3 * time.Second)
			worker.Rest()
		}
		return log.Verdict()
	}
	idempotent, counting := run(false), run(true)
	if !idempotent.Passed() || idempotent.Delivered < jobs/2 || len(idempotent.CompletedAgain) < jobs/10 {
		t.Errorf("an idempotent worker:\n%s", idempotent)
	}
	if counting.Passed() || len(counting.Different) != len(idempotent.CompletedAgain) {
		t.Errorf("a worker that counts its runs:\n%s", counting)
	}
	text, shown := counting.String(), min(20, len(counting.Different))
	if !strings.HasPrefix(text, "verdict: FAILED; ") || strings.Count(text, "\n  submission ") != shown {
		t.Errorf("the text is\n%s", text)
	}
}

// A message that a Beanstalk worker deletes comes again, though the session also cancels it in case nobody holds it.
func TestDeleteOfABeanstalkJobIsLost(t *testing.T) {
	t.Parallel()
	stage, log := judged(t, "duplicate=1", 7, newBeanstalk)
	c := stage.Dial("c")
	c.Send("put 0 0 60 1\r\na\r\nwatch default\r\nreserve-with-timeout 0\r\ndelete 1\r\nreserve-with-timeout 0\r\ndelete 1\r\n")
	c.Want("INSERTED 1\r\nWATCHING 1\r\nRESERVED 1 1\r\na\r\nDELETED\r\nRESERVED 1 1\r\na\r\nDELETED\r\n")
	if got := findings(log.Verdict()); got != "again: completed 2 times; deliveries: 2" {
		t.Errorf("got %q", got)
	}
}
