package qless

import (
	"strings"
	"testing"

	"broker/core"
	"broker/frontends/frontendtest"
)

// A recurring definition chooses the jids of its jobs, so a new job may replace a job that a client has put with the
// same jid. The call that replaces it can pop the new job at once.
func TestRecurringJobReplacesJobWithTheSameJID(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][][]string{
		"waiting in another queue": {{"put", "1", "me", "p", "r-1", "K", "{}", "0"}},
		"scheduled":                {{"put", "1", "me", "q", "r-1", "K", "{}", "1000"}},
		"blocked": {
			{"put", "1", "me", "p", "on", "K", "{}", "0"},
			{"put", "1", "me", "q", "r-1", "K", "{}", "0", "depends", `["on"]`},
		},
		"failed": {
			{"put", "1", "me", "p", "r-1", "K", "{}", "0"},
			{"pop", "1", "p", "w", "1"},
			{"fail", "1", "r-1", "w", "g", "m"},
		},
		"complete": {
			{"put", "1", "me", "p", "r-1", "K", "{}", "0"},
			{"pop", "1", "p", "w", "1"},
			{"complete", "1", "r-1", "w", "p", "{}"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := setup(t, frontendtest.InMemory)
			for _, words := range before {
				c.call(words...)
			}
			c.call("recur", "1", "q", "r", "R", "[1]", "interval", "10", "0")
			got := c.call("pop", "2", "q", "w2", "1")
			if !strings.Contains(got, `"jid":"r-1"`) || !strings.Contains(got, `"klass":"R"`) ||
				!strings.Contains(got, `"worker":"w2"`) {
				t.Errorf("pop: %s", got)
			}
			f := s.Front.(*Frontend)
			info := f.one(&core.Inspect{Ref: core.Ref{ID: "r-1"}}).Info
			if info == nil || info.State != core.Leased || info.Queue != "q" || info.Worker != "w2" {
				t.Errorf("the broker's job: %+v", info)
			}
			c.want("{}", "failed", "3")
			c.want("complete", "complete", "3", "r-1", "w2", "q", "{}")
		})
	}
}

func TestRefusedCallIsUndoneInTheBroker(t *testing.T) {
	t.Parallel()
	s, c := setup(t, frontendtest.InMemory)
	f := s.Front.(*Frontend)
	c.call("put", "1", "me", "q", "first", "K", "{}", "5000")
	f.one(&core.SetQueueMax{Queue: "q", Max: core.QueueMax{Normal: core.MaxAtomic + 200}})
	c.call("recur", "1", "q", "r", "K", "{}", "interval", "1", "0")
	if got := c.call("pop", "2000", "q", "w", "1500"); got != "-OOM the queue is full" {
		t.Errorf("pop: %.200s", got)
	}
	if r := f.one(&core.ListJobs{Limit: 10}); len(r.Jobs) != 1 {
		t.Errorf("the broker has %d jobs", len(r.Jobs))
	}
	c.want(":1", "length", "2000", "q")
	if got := c.call("pop", "2000", "q", "w", "3"); !strings.Contains(got, `"jid":"r-1"`) {
		t.Errorf("a smaller pop: %s", got)
	}
}

func TestFlushRemovesJobsOfOtherProtocols(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, started(Options{AllowFlush: true}), frontendtest.InMemory)
	c := dial(t, s)
	f := s.Front.(*Frontend)
	c.want(":0", "length", "1", "q")
	f.broker.Do(f.broker.Open(core.ClientOptions{Protocol: core.HTTP}),
		[]core.Op{&core.Submit{Job: &core.Job{ID: "other", Queue: "q", Type: "q"}}}, nil)
	if got := c.do("FLUSHDB"); got != "OK" {
		t.Fatal(got)
	}
	c.want("other", "put", "1", "me", "q", "other", "K", "{}", "0")
	c.want(":1", "length", "1", "q")
}

// The model does not know the dependencies of jobs of other protocols, so it must not change them.
func TestBlockedJobsOfOtherProtocolsKeepTheirDependencies(t *testing.T) {
	t.Parallel()
	s, c := setup(t)
	f := s.Front.(*Frontend)
	client := f.broker.Open(core.ClientOptions{Protocol: core.HTTP})
	for _, j := range []*core.Job{
		{ID: "first", Queue: "q"},
		{ID: "second", Queue: "q", After: []uint64{1}},
		{ID: "third", Queue: "q", After: []uint64{1}, OnBroken: core.BrokenFails},
	} {
		j.Origin = core.HTTP
		if r := f.broker.Do(client, []core.Op{&core.Submit{Job: j}}, nil); r[0].Kind != core.Submitted {
			t.Fatalf("%+v", r)
		}
	}
	blocked := func(when string) {
		t.Helper()
		f := s.Front.(*Frontend)
		for _, id := range []string{"second", "third"} {
			if i := f.one(&core.Inspect{Ref: core.Ref{ID: id}}).Info; i == nil || i.State != core.Blocked ||
				len(i.Waiting) != 1 {
				t.Errorf("%s: %s is %+v", when, id, i)
			}
		}
	}
	c.call("length", "1", "q")
	blocked("at first")
	s.Restart()
	c = dial(t, s)
	c.call("length", "1", "q")
	blocked("after a restart")
	c.call("priority", "1", "second", "5")
	c.call("tag", "1", "add", "third", "x")
	blocked("after a change")
	c.call("pop", "1", "q", "w", "1")
	c.call("complete", "1", "first", "w", "q", "{}")
	if got := c.call("pop", "1", "q", "w", "9"); !strings.Contains(got, "second") || !strings.Contains(got, "third") {
		t.Errorf("in the end: %s", got)
	}
}
