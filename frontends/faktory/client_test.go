package faktory

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/contribsys/faktory/client"

	"broker/core"
	"broker/core/engine"
	"broker/frontends"
)

// serve runs the front-end on real sockets, for published clients. It returns the server's address and the broker's clock.
func serve(t testing.TB, o Options) (*client.Server, func() time.Time) {
	t.Helper()
	e, err := engine.Open(engine.Options{Dir: "data", FS: engine.MemoryFS()})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front := New(e, o)
	var loops sync.WaitGroup
	loops.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = nc.Close() })
			loops.Go(func() { socketLoop(e, front, nc) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		loops.Wait()
		if err := e.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	s := client.DefaultServer()
	s.Address, s.Password = ln.Addr().String(), o.Password
	return s, func() time.Time { return e.Now().Time() }
}

// socketConn is a connection with a goroutine of its own, in place of an event loop.
type socketConn struct {
	frontends.Conn
	out  frontends.Outbox
	wake chan struct{}
	shut bool
}

func (c *socketConn) Out() *frontends.Outbox { return &c.out }
func (c *socketConn) CloseAfterFlush()       { c.shut = true }
func (c *socketConn) Abort()                 { c.shut = true }
func (c *socketConn) RemoteAddr() net.Addr   { return nil }

func (c *socketConn) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// socketLoop serves one connection until one side closes it.
func socketLoop(b core.Broker, f *Frontend, nc net.Conn) {
	defer nc.Close() //nolint:errcheck // the client has what it asked for
	c := &socketConn{wake: make(chan struct{}, 1)}
	session := f.Open(c)
	defer session.Closed()
	input := make(chan []byte)
	go func() { // ends when the connection is closed
		defer close(input)
		for {
			p := make([]byte, 4096)
			n, err := nc.Read(p)
			if err != nil {
				return
			}
			input <- p[:n]
		}
	}()
	var unread []byte
	for {
		p := c.out.Sendable(b.Committed())
		if _, err := nc.Write(p); err != nil {
			break
		}
		if c.out.Sent(len(p)); c.shut && c.out.Len() == 0 {
			break
		}
		more, open := []byte(nil), true
		select {
		case more, open = <-input:
		case <-c.wake:
			session.Deliver()
		}
		if !open {
			return
		}
		unread = append(unread, more...)
		unread = unread[session.Feed(unread):]
	}
	_ = nc.Close()
	for range input { // until the reader ends
	}
}

func open(t testing.TB, s *client.Server) *client.Client {
	t.Helper()
	c, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestOfficialClientPushesAndWorks(t *testing.T) {
	t.Parallel()
	for _, password := range []string{"", "secret"} {
		server, _ := serve(t, Options{Password: password})
		c := open(t, server)
		job := client.NewJob("Resize", 1<<60, "ü", map[string]any{"a": []int{1}})
		job.Queue, job.ReserveFor = "images", 90
		job.SetCustom("tenant", "x")
		must(t, c.Push(job))
		must(t, c.Push(job)) // again, as after a lost reply
		got, err := c.Fetch("default", "images")
		must(t, err)
		if got.Jid != job.Jid || got.Type != "Resize" || got.ReserveFor != 90 || *got.Retry != 25 || got.CreatedAt != job.CreatedAt ||
			got.EnqueuedAt == "" || got.Custom["tenant"] != "x" || got.Args[1] != "ü" {
			t.Errorf("fetched %+v", got)
		}
		must(t, c.Fail(got.Jid, errors.New("boom"), nil))
		must(t, c.Requeue(client.Retries, client.OfType("Resize")))
		got, err = c.Fetch("images")
		must(t, err)
		if got == nil || got.Failure == nil || got.Failure.ErrorMessage != "boom" || got.Failure.RetryRemaining != 25 {
			t.Fatalf("fetched %+v", got)
		}
		must(t, c.Ack(got.Jid))
		info, err := c.CurrentState()
		must(t, err)
		if info.Data.TotalProcessed != 2 || info.Data.TotalFailures != 1 || info.Server.Description != Description ||
			info.Server.Version != Version || info.Server.Connections != 1 {
			t.Errorf("state %+v", info)
		}
		if password != "" {
			wrong := *server
			wrong.Password = "guess"
			if _, err := wrong.Open(); err == nil || err.Error() != "ERR Invalid password" {
				t.Errorf("with a wrong password: %v", err)
			}
		}
	}
}

func TestOfficialClientManagesQueuesAndSets(t *testing.T) {
	t.Parallel()
	server, now := serve(t, Options{})
	c := open(t, server)
	jobs := []*client.Job{client.NewJob("A", 1), client.NewJob("A", 2), client.NewJob("B", 3), {Jid: "12345678", Type: "B"}}
	refused, err := c.PushBulk(jobs)
	must(t, err)
	if len(refused) != 1 || refused["12345678"] != "jobs must have an args parameter" {
		t.Errorf("refused %v", refused)
	}
	sizes := func(want string) {
		t.Helper()
		got, err := c.QueueSizes()
		must(t, err)
		if text, _ := json.Marshal(got); string(text) != want {
			t.Errorf("queues %s, want %s", text, want)
		}
	}
	sizes(`{"default":3}`)
	must(t, c.PauseQueues("default"))
	if job, err := c.Fetch("default"); job != nil || err != nil {
		t.Errorf("fetched %v, %v from a paused queue", job, err)
	}
	must(t, c.ResumeQueues("*"))
	later := client.NewJob("A", 4)
	later.At = now().Add(time.Hour).Format(time.RFC3339Nano)
	must(t, c.Push(later))
	must(t, c.Kill(client.Scheduled, client.WithJids(later.Jid)))
	must(t, c.Requeue(client.Dead, client.Matching("*"+later.Jid+"*")))
	sizes(`{"default":4}`)
	must(t, c.Discard(client.Dead, client.Everything))
	must(t, c.Clear(client.Retries))
	must(t, c.RemoveQueues("default"))
	sizes(`{}`)
	must(t, c.Push(client.NewJob("A", 5)))
	must(t, c.Flush())
	sizes(`{"default":0}`)
}

func TestOfficialClientUsesLocksAndTracking(t *testing.T) {
	t.Parallel()
	server, now := serve(t, Options{})
	c := open(t, server)
	unique := func() *client.Job { return client.NewJob("U", 1).SetUniqueFor(60).SetUniqueness(client.UntilStart) }
	must(t, c.Push(unique()))
	if err := c.Push(unique()); err == nil || err.Error() != "NOTUNIQUE Job not unique" {
		t.Errorf("the second one: %v", err)
	}
	_, err := c.Fetch("default")
	must(t, err)
	must(t, c.Push(unique().SetExpiresIn(-time.Second)))
	must(t, c.Push(client.NewJob("T", 2).SetCustom("track", 1)))
	job, err := c.Fetch("default")
	must(t, err)
	if job.Type != "T" {
		t.Fatalf("fetched %+v, which has expired", job)
	}
	until := now().Add(2 * time.Hour)
	must(t, c.TrackSet(job.Jid, 42, "halfway", &until))
	track, err := c.TrackGet(job.Jid)
	must(t, err)
	if track.State != "working" || track.Percent != 42 || track.Description != "halfway" || track.UpdatedAt == "" {
		t.Errorf("track %+v", track)
	}
	must(t, c.Ack(job.Jid))
	track, err = c.TrackGet(job.Jid)
	must(t, err)
	if track.State != "success" {
		t.Errorf("track %+v", track)
	}
}

func TestOfficialClientRunsBatches(t *testing.T) {
	t.Parallel()
	server, _ := serve(t, Options{})
	c := open(t, server)
	b := client.NewBatch(c)
	b.Description = "nightly"
	b.Success = client.NewJob("AllWell", 1)
	b.Complete = client.NewJob("AllRan", 2)
	must(t, b.Jobs(func() error {
		for i := range 3 {
			if err := b.Push(client.NewJob("Part", i)); err != nil {
				return err
			}
		}
		refused, err := b.PushBulk([]*client.Job{client.NewJob("Part", 3)})
		if err == nil && len(refused) > 0 {
			err = fmt.Errorf("refused %v", refused)
		}
		return err
	}))
	work := func(want string) *client.Job {
		t.Helper()
		job, err := c.Fetch("default")
		must(t, err)
		if job == nil || job.Type != want {
			t.Fatalf("fetched %+v, want %s", job, want)
		}
		must(t, c.Ack(job.Jid))
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
	must(t, err)
	if st.Total != 4 || st.Pending != 0 || st.Failed != 0 || st.CompleteState != "2" || st.SuccessState != "2" || st.Description != "nightly" {
		t.Errorf("status %+v", st)
	}
}

func TestOfficialClientLearnsOfQuiet(t *testing.T) {
	server, _ := serve(t, Options{}) // not parallel: the client's worker id is a global
	client.RandomProcessWid = "w-of-the-go-client"
	defer func() { client.RandomProcessWid = "" }()
	c := open(t, server)
	for _, step := range []struct{ say, hear string }{
		{"", ""}, {"quiet", `{"state":"quiet"}`}, {"", `{"state":"quiet"}`}, {"terminate", `{"state":"terminate"}`},
	} {
		if got, err := c.Beat(step.say); err != nil || got != step.hear {
			t.Errorf("Beat(%q) = %q, %v", step.say, got, err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
