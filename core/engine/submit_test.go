package engine_test

import (
	"reflect"
	"testing"
	"time"

	"broker/core"
)

// TestSubmittedInfoIsThatOfAnInspection submits jobs that become ready, scheduled, blocked, held back and leased at
// once; the reply says what an inspection says right after it.
func TestSubmittedInfoIsThatOfAnInspection(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	c, worker := d.client(core.HTTP), d.client(core.Workq)
	d.one(c, &core.PauseQueue{Queue: "paused"})
	lease := &core.Lease{Queues: []string{"wanted"}, Holder: core.HeldByNobody, Deadline: d.clk.Now().Add(time.Hour)}
	d.Do(worker, []core.Op{lease}, nil)
	first := d.one(c, &core.Submit{Job: &core.Job{Queue: "q"}})
	for name, expected := range map[string]struct {
		job   core.Job
		state core.State
	}{
		"ready":     {core.Job{Queue: "q", Priority: 7, Body: []byte("body")}, core.Ready},
		"scheduled": {core.Job{Queue: "q", ReadyAt: d.clk.Now().Add(time.Hour)}, core.Scheduled},
		"blocked":   {core.Job{Queue: "q", After: []uint64{first.Seq}}, core.Blocked},
		"paused":    {core.Job{Queue: "paused", Tags: []string{"t"}}, core.Ready},
		"leased":    {core.Job{Queue: "wanted", Type: "w"}, core.Leased},
	} {
		r := d.one(c, &core.Submit{Job: new(expected.job), Info: true})
		if r.Kind != core.Submitted || r.Info == nil || r.Info.State != expected.state {
			t.Fatalf("%s: %+v", name, r)
		}
		want := d.one(c, &core.Inspect{Ref: core.Ref{Seq: r.Seq}, Brief: true})
		if !reflect.DeepEqual(r.Info, want.Info) {
			t.Errorf("%s: %+v, want %+v", name, r.Info, want.Info)
		}
		if r := d.one(c, &core.Submit{Job: new(expected.job)}); r.Info != nil {
			t.Errorf("%s has information that nobody asked for", name)
		}
	}
	d.one(c, &core.Bury{Ref: core.Ref{Seq: first.Seq}})
	job := &core.Job{Queue: "q", After: []uint64{first.Seq}, OnBroken: core.BrokenDrops}
	if r := d.one(c, &core.Submit{Job: job, Info: true}); r.Info == nil || r.Info.Seq != r.Seq || r.Info.Job != job {
		t.Errorf("cancelled at once: %+v", r.Info)
	}
}
