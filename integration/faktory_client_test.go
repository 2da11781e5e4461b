package integration_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
)

func TestOfficialClientPushesAndWorks(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for _, password := range []string{"", "secret"} {
		b := harness.Start(t, harness.Options{Password: password})
		c := dialFaktory(t, b)
		job := faktory.NewJob("Resize", 1<<60, "ü", map[string]any{"a": []int{1}})
		job.Queue, job.ReserveFor = "images", 90
		job.SetCustom("tenant", "x")
		check(t, c.Push(job))
		check(t, c.Push(job)) // again, as after a lost reply
		got, err := c.Fetch("default", "images")
		check(t, err)
		if got.Jid != job.Jid || got.Type != "Resize" || got.ReserveFor != 90 || *got.Retry != 25 ||
			got.CreatedAt != job.CreatedAt ||
			got.EnqueuedAt == "" || got.Custom["tenant"] != "x" || got.Args[1] != "ü" {
			t.Errorf("fetched %+v", got)
		}
		check(t, c.Fail(got.Jid, errors.New("boom"), nil))
		check(t, c.Requeue(faktory.Retries, faktory.OfType("Resize")))
		got, err = c.Fetch("images")
		check(t, err)
		if got == nil || got.Failure == nil || got.Failure.ErrorMessage != "boom" || got.Failure.RetryRemaining != 25 {
			t.Fatalf("fetched %+v", got)
		}
		check(t, c.Ack(got.Jid))
		info, err := c.CurrentState()
		check(t, err)
		if info.Data.TotalProcessed != 2 || info.Data.TotalFailures != 1 ||
			info.Server.Description != "Faktory Enterprise" ||
			info.Server.Version != "1.10.0" || info.Server.Connections != 1 {
			t.Errorf("state %+v", info)
		}
	}
}

func TestOfficialClientManagesQueuesAndSets(t *testing.T) {
	t.Parallel()
	c := dialFaktory(t, startShared(t))
	jobs := []*faktory.Job{
		faktory.NewJob("A", 1), faktory.NewJob("A", 2), faktory.NewJob("B", 3), {Jid: "12345678", Type: "B"},
	}
	refused, err := c.PushBulk(jobs)
	check(t, err)
	if len(refused) != 1 || refused["12345678"] != "jobs must have an args parameter" {
		t.Errorf("refused %v", refused)
	}
	sizes := func(want string) {
		t.Helper()
		got, err := c.QueueSizes()
		check(t, err)
		if text, _ := json.Marshal(got); string(text) != want {
			t.Errorf("queues %s, want %s", text, want)
		}
	}
	sizes(`{"default":3}`)
	check(t, c.PauseQueues("default"))
	if job, err := c.Fetch("default"); job != nil || err != nil {
		t.Errorf("fetched %v, %v from a paused queue", job, err)
	}
	check(t, c.ResumeQueues("*"))
	later := faktory.NewJob("A", 4)
	later.At = time.Now().Add(time.Hour).Format(time.RFC3339Nano)
	check(t, c.Push(later))
	check(t, c.Kill(faktory.Scheduled, faktory.WithJids(later.Jid)))
	check(t, c.Requeue(faktory.Dead, faktory.Matching("*"+later.Jid+"*")))
	sizes(`{"default":4}`)
	check(t, c.Discard(faktory.Dead, faktory.Everything))
	check(t, c.Clear(faktory.Retries))
	check(t, c.RemoveQueues("default"))
	sizes(`{}`)
	check(t, c.Push(faktory.NewJob("A", 5)))
	check(t, c.Flush())
	sizes(`{"default":0}`)
}

func TestOfficialClientUsesLocksAndTracking(t *testing.T) {
	t.Parallel()
	c := dialFaktory(t, startShared(t))
	unique := func() *faktory.Job { return faktory.NewJob("U", 1).SetUniqueFor(60).SetUniqueness(faktory.UntilStart) }
	check(t, c.Push(unique()))
	if err := c.Push(unique()); err == nil || err.Error() != "NOTUNIQUE Job not unique" {
		t.Errorf("the second one: %v", err)
	}
	_, err := c.Fetch("default")
	check(t, err)
	check(t, c.Push(unique().SetExpiresIn(-time.Second)))
	check(t, c.Push(faktory.NewJob("T", 2).SetCustom("track", 1)))
	job, err := c.Fetch("default")
	check(t, err)
	if job.Type != "T" {
		t.Fatalf("fetched %+v, which has expired", job)
	}
	until := time.Now().Add(2 * time.Hour)
	check(t, c.TrackSet(job.Jid, 42, "halfway", &until))
	track, err := c.TrackGet(job.Jid)
	check(t, err)
	if track.State != "working" || track.Percent != 42 || track.Description != "halfway" || track.UpdatedAt == "" {
		t.Errorf("track %+v", track)
	}
	check(t, c.Ack(job.Jid))
	track, err = c.TrackGet(job.Jid)
	check(t, err)
	if track.State != "success" {
		t.Errorf("track %+v", track)
	}
}

func TestOfficialClientRunsBatches(t *testing.T) {
	t.Parallel()
	c := dialFaktory(t, startShared(t))
	b := faktory.NewBatch(c)
	b.Description = "nightly"
	b.Success = faktory.NewJob("AllWell", 1)
	b.Complete = faktory.NewJob("AllRan", 2)
	check(t, b.Jobs(func() error {
		for i := range 3 {
			if err := b.Push(faktory.NewJob("Part", i)); err != nil {
				return err
			}
		}
		refused, err := b.PushBulk([]*faktory.Job{faktory.NewJob("Part", 3)})
		if err == nil && len(refused) > 0 {
			err = fmt.Errorf("refused %v", refused)
		}
		return err
	}))
	work := func(want string) *faktory.Job {
		t.Helper()
		job := fetchSoon(t, c, "default")
		if job.Type != want {
			t.Fatalf("fetched %+v, want %s", job, want)
		}
		check(t, c.Ack(job.Jid))
		return job
	}
	for range 4 {
		if bid, _ := work("Part").GetCustom("bid"); bid != b.Bid {
			t.Errorf("part of %v", bid)
		}
	}
	for _, callback := range []string{"AllRan", "AllWell"} {
		if bid, _ := work(callback).GetCustom("_bid"); bid != b.Bid {
			t.Errorf("%s is the callback of %v", callback, bid)
		}
	}
	st, err := c.BatchStatus(b.Bid)
	check(t, err)
	if st.Total != 4 || st.Pending != 0 || st.Failed != 0 || st.CompleteState != "2" || st.SuccessState != "2" ||
		st.Description != "nightly" {
		t.Errorf("status %+v", st)
	}
}

func TestOfficialClientLearnsOfQuiet(t *testing.T) {
	b := startShared(t) // not parallel: the client's worker id is a global
	faktory.RandomProcessWid = "w-of-the-go-client"
	defer func() { faktory.RandomProcessWid = "" }()
	c := dialFaktory(t, b)
	for _, step := range []struct{ say, hear string }{
		{"", ""}, {"quiet", `{"state":"quiet"}`}, {"", `{"state":"quiet"}`}, {"terminate", `{"state":"terminate"}`},
	} {
		if got, err := c.Beat(step.say); err != nil || got != step.hear {
			t.Errorf("Beat(%q) = %q, %v", step.say, got, err)
		}
	}
}
