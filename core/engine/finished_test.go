package engine_test

import (
	"testing"
	"time"

	"broker/core"
	"broker/core/engine"
)

// TestFinishedJobsAreReadAfterARestart keeps the jobs of a queue, with bodies, outcomes and timelines that are only on
// disk.
func TestFinishedJobsAreReadAfterARestart(t *testing.T) {
	t.Parallel()
	d := setup(t, func(o *engine.Options) { o.CacheBytes = 1 })
	keep := &core.KeepDone{Queue: "q", Retention: core.Retention{For: time.Hour, Count: 3}}
	c := d.client(core.Faktory)
	d.one(c, keep)
	for _, id := range []string{"a", "b", "c", "d"} {
		r := d.one(c, &core.Submit{Job: &core.Job{
			ID: id, Queue: "first of " + id, Body: []byte("body " + id), Origin: core.Faktory, Timeline: 10,
		}})
		d.one(c, &core.Move{Ref: core.Ref{Seq: r.Seq}, Queue: "q"})
		d.Flush()
		if id == "c" {
			d.one(c, &core.Fail{
				Ref: core.Ref{Seq: r.Seq}, Authority: core.ByAnyone, Failure: &core.Failure{Type: "E"}, Final: true,
			})
		} else {
			d.one(c, &core.Complete{
				Ref: core.Ref{Seq: r.Seq}, Authority: core.ByAnyone, Result: []byte("result " + id),
			})
		}
		d.Flush()
	}
	look := func() {
		t.Helper()
		c := d.client(core.Faktory)
		d.one(c, keep)
		if r := d.one(c, &core.Inspect{Ref: core.Ref{ID: "a"}}); r.Kind != core.Failed {
			t.Errorf("one too many is kept: %+v", r.Info)
		}
		for _, id := range []string{"b", "c", "d"} {
			r := d.one(c, &core.Inspect{Ref: core.Ref{ID: id}, Timeline: true})
			if r.Info == nil || r.Info.State != core.Done || string(r.Job.Body) != "body "+id || r.Info.Outcome == nil {
				t.Fatalf("%s: %+v", id, r.Info)
			}
			if o := r.Info.Outcome; id == "c" && (o.Success || o.Failure.Type != "E") ||
				id != "c" && string(o.Result) != "result "+id {
				t.Errorf("outcome of %s: %+v", id, o)
			}
			if e := r.Info.Timeline.Entries; len(e) != 3 || e[1].Detail != "first of "+id {
				t.Errorf("timeline of %s: %+v", id, e)
			}
		}
		jobs := d.one(c, &core.Find{Order: core.OrderFinished, Desc: true}).Jobs
		if len(jobs) != 3 || jobs[0].Job.ID != "d" || jobs[1].Failure == nil || jobs[2].Job.ID != "b" {
			t.Errorf("found %+v", jobs)
		}
	}
	look()
	d.shutdown()
	d.open(func(o *engine.Options) { o.CacheBytes = 1 })
	look()
}
