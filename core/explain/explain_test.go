package explain_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/archive"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/core/explain"
)

var update = flag.Bool("update", false, "write what was explained to testdata")

// history plays operations, each with its commit, and is then read from the archive.
type history struct {
	t    *testing.T
	e    *engine.Engine
	clk  *coretest.Clock
	c    core.ClientID
	dir  string
	seqs map[string]uint64 // by id

	limits []core.Limit // in the present settings
}

func newHistory(t *testing.T) *history {
	t.Helper()
	h := &history{t: t, clk: coretest.NewClock(), dir: filepath.Join(t.TempDir(), "archive"), seqs: map[string]uint64{}}
	data := filepath.Join(t.TempDir(), "data")
	w := archive.New(archive.Options{
		Dir: h.dir, Scratch: filepath.Join(data, "archiving"), Every: time.Millisecond, Clock: h.clk,
	})
	e, err := engine.Open(engine.Options{
		Dir: data, Clock: h.clk, Seed: 1, Archive: w, ManualTimers: true, ManualCommits: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.e, h.c = e, e.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})
	for w.Status().BaseAt == 0 { // the copy of the store is part of the history
		<-time.After(time.Millisecond) // the writer tells nobody
	}
	return h
}

func (h *history) do(op core.Op) {
	h.t.Helper()
	h.clk.Advance(time.Second)
	for _, r := range h.e.Do(h.c, []core.Op{op}, nil) {
		if r.Err != nil {
			h.t.Fatalf("%T: %v", op, r.Err)
		}
	}
	h.e.Flush()
}

func (h *history) submit(id, queue string, change func(*core.Job)) {
	h.t.Helper()
	j := &core.Job{ID: id, Queue: queue, Origin: core.Faktory, MaxFails: 3, LeaseFor: time.Minute}
	if change != nil {
		change(j)
	}
	h.clk.Advance(time.Second)
	for _, r := range h.e.Do(h.c, []core.Op{&core.Submit{Job: j}}, nil) {
		if r.Err != nil {
			h.t.Fatal(r.Err)
		}
		h.seqs[id] = r.Seq
	}
	h.e.Flush()
}

func (h *history) lease(worker, queue string) {
	h.t.Helper()
	h.do(&core.Lease{Queues: []string{queue}, Holder: core.HeldByWorker, Worker: worker})
}

// explain returns what the archive says.
func (h *history) explain(jobs ...string) string {
	h.t.Helper()
	if err := h.e.Shutdown(); err != nil {
		h.t.Fatal(err)
	}
	r, err := explain.Jobs(context.Background(), explain.Options{Dir: h.dir, Jobs: jobs, Limits: h.limits})
	if err != nil {
		h.t.Fatal(err)
	}
	var b strings.Builder
	for _, s := range r.Jobs {
		fmt.Fprintf(&b, "job %s (%s) in %s\n", s.Asked, s.ID, s.Queue)
		for _, e := range s.Events {
			fmt.Fprintf(&b, "  %s %s\n", e.At.Time().Format("04:05"), e.What)
			for _, why := range e.Why {
				fmt.Fprintf(&b, "    %s\n", why)
			}
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note %s\n", n)
	}
	return b.String()
}

// want compares with a file, which people read.
func want(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != got {
		t.Errorf("%s: %v; got\n%s", path, err, got)
	}
}

func TestExplainSaysWhoRanFirstAndWhy(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.submit("plain", "mail", nil)
	h.submit("later", "mail", nil)
	h.submit("urgent", "mail", func(j *core.Job) { j.Priority = 7 })
	h.submit("elsewhere", "images", nil)
	for range 3 {
		h.lease("w1", "mail")
	}
	for _, id := range []string{"urgent", "plain", "later"} {
		h.do(&core.Complete{Ref: core.Ref{Seq: h.seqs[id]}, Authority: core.ByLeased})
	}
	h.lease("w2", "images")
	want(t, "order", h.explain("plain", "urgent", "later", "elsewhere"))
}

func TestExplainFollowsFailuresLimitsAndDependencies(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.do(&core.PutLimit{Limit: core.Limit{
		Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 1},
	}})
	h.submit("first", "q", nil)
	h.submit("second", "q", func(j *core.Job) { j.After = []uint64{h.seqs["first"]} })
	h.lease("w1", "q")
	h.do(&core.Fail{
		Ref: core.Ref{Seq: h.seqs["first"]}, Authority: core.ByLeased, Failure: &core.Failure{Message: "no such host"},
		RetryAt: h.clk.Now().Add(5 * time.Second),
	})
	h.do(&core.PauseQueue{Queue: "q", Paused: true})
	h.clk.Advance(time.Minute)
	h.e.Tick()
	h.do(&core.PauseQueue{Queue: "q", Paused: false})
	h.lease("w2", "q")
	h.do(&core.Complete{Ref: core.Ref{Seq: h.seqs["first"]}, Authority: core.ByLeased})
	h.lease("w2", "q")
	want(t, "failures", h.explain("first", "second"))
}

func TestExplainNamesLimitsAcrossQueues(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.do(&core.PutLimit{Limit: core.Limit{
		Name: "api", Selector: core.Selector{Queues: []string{"mail", "sync"}, Types: []string{"Call"}},
		Throttle: core.Throttle{Leased: 3, Rate: 10},
	}})
	h.submit("small", "mail", nil)
	h.submit("large", "sync", func(j *core.Job) { j.Cost = 2 })
	h.submit("by-type", "other", func(j *core.Job) { j.Type = "Call" })
	h.submit("free", "other", nil)
	for _, queue := range []string{"mail", "sync", "other"} {
		h.lease("w1", queue)
	}
	h.do(&core.Complete{Ref: core.Ref{Seq: h.seqs["large"]}, Authority: core.ByLeased})
	h.lease("w1", "other")
	h.do(&core.RemoveLimit{ID: core.LimitID{Name: "api"}})
	h.submit("late", "mail", nil)
	want(t, "shared", h.explain("small", "large", "by-type", "free", "late"))
}

// TestExplainNamesWhatKeptAJobBack: each time the job "held" is passed by the job "passes".
func TestExplainNamesWhatKeptAJobBack(t *testing.T) {
	t.Parallel()
	tagged := func(key, typ string) func(*core.Job) {
		return func(j *core.Job) { j.Tags, j.Type = []string{"tenant:" + key}, typ }
	}
	byTenant := core.JobKey{Kind: core.KeyTag, Tag: "tenant"}
	of := func(scope core.LimitScope, to core.Throttle) core.Op {
		return &core.PutLimit{Limit: core.Limit{Selector: core.InQueue("q", scope, ""), Throttle: to}}
	}
	for name, c := range map[string]struct {
		set   []core.Op
		first bool // a job of the key acme and the type Mail runs already
		want  string
	}{
		"limit of a type": {
			[]core.Op{of(core.ScopeType, core.Throttle{Leased: 1})},
			true, "the limit 1 at once (of each type) was reached: 1 were taken",
		},
		"limit of a key": {
			[]core.Op{
				&core.ShareQueue{Sharing: core.Sharing{Queue: "q", Key: byTenant}},
				of(core.ScopeKey, core.Throttle{Leased: 1}),
			},
			true, "the limit 1 at once (of each key) was reached: 1 were taken",
		},
		"rate": {
			[]core.Op{of(core.ScopeType, core.Throttle{Rate: 0.01})},
			true, "the rate of the limit 0.01/s (of each type) may have kept it back",
		},
		"order": {
			[]core.Op{&core.ShareQueue{Sharing: core.Sharing{Queue: "q", Key: byTenant, Ordered: true}}},
			true, "the queue runs the jobs of the key acme in order, and job first comes first",
		},
		"fair turn": {
			[]core.Op{&core.ShareQueue{Sharing: core.Sharing{Queue: "q", Key: byTenant, Fair: true}}},
			true, "keys take turns: it was the turn of the key bolt, and not of the key acme",
		},
		"shared limit": {
			[]core.Op{&core.PutLimit{Limit: core.Limit{
				Name: "api", Selector: core.Selector{Types: []string{"Mail"}}, Throttle: core.Throttle{Leased: 1},
			}}},
			true, "the shared limit api, 1 at once, was reached: 1 were taken",
		},
		"worker": {
			[]core.Op{of(core.ScopeType, core.Throttle{LeasedPerWorker: 1})},
			true, `the limit 1 per worker (of each type) was reached: the worker "w1" had 1`,
		},
		"choice by id": {nil, false, "no limit and no turn kept it back: the worker chose the other job by its id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			for _, op := range c.set {
				h.do(op)
			}
			if c.first {
				h.submit("first", "q", tagged("acme", "Mail"))
				h.lease("w1", "q")
			}
			h.submit("held", "q", tagged("acme", "Mail"))
			h.submit("passes", "q", tagged("bolt", "Sync"))
			if c.first {
				h.lease("w1", "q")
			} else {
				h.do(&core.LeaseJob{Ref: core.Ref{Seq: h.seqs["passes"]}, Worker: "w2", LeaseFor: time.Minute})
			}
			h.do(&core.Complete{Ref: core.Ref{Seq: h.seqs["passes"]}, Authority: core.ByLeased})
			if text := h.explain("passes", "held"); !strings.Contains(text, "job held was ahead of it: "+c.want) {
				t.Errorf("explained\n%s", text)
			}
		})
	}
}

func TestExplainNamesLimitsOfTheSettings(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.submit("one", "mail", nil)
	h.submit("two", "other", nil)
	h.limits = []core.Limit{
		{Selector: core.InQueue("mail", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 3}},
		{Selector: core.InQueue("mail", core.ScopeType, "Call"), Throttle: core.Throttle{Rate: 2}},
	}
	const line = "    limits of the queue in the present settings: 2/s (type Call); 3 at once\n"
	if text := h.explain("one", "two"); strings.Count(text, line) != 1 {
		t.Errorf("explained\n%s", text)
	}
}

func TestExplainKnowsNumbersAndRefusesUnknownJobs(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.submit("named", "q", nil)
	if text := h.explain(fmt.Sprint("#", h.seqs["named"])); !strings.Contains(text, "(named) in q") {
		t.Errorf("by number:\n%s", text)
	}
	if _, err := explain.Jobs(context.Background(),
		explain.Options{Dir: h.dir, Jobs: []string{"nobody"}}); !errors.Is(err, explain.ErrUnknown) {
		t.Errorf("unknown job: %v", err)
	}
	if _, err := explain.Jobs(context.Background(),
		explain.Options{Dir: t.TempDir(), Jobs: []string{"named"}}); !errors.Is(err, archive.ErrNoArchive) {
		t.Errorf("no archive: %v", err)
	}
}
