package frontendtest

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Run tests the behaviour that all front-ends share, each case on a new stage: at the node of the broker, and at a node
// that follows, over a link.
func Run(t *testing.T, d Dialect) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*testing.T, Dialect)
	}{
		{"a job is leased once, with its body", leasedOnce},
		{"a finished job does not come back", finishedIsGone},
		{"an expired lease makes the job ready", leaseRunsOut},
		{"a worker disconnects", workerHangsUp},
		{"jobs stay when their client disconnects", clientHangsUp},
		{"jobs survive a restart", survivesRestart},
		{"pipelined requests are answered in order", pipelined},
		{"split input has the same replies", splitIsWhole},
		{"no reply leaves before its commit", heldUntilCommit},
		{"each command's answer waits for its commit and is woken by it", wokenByItsCommit},
		{"a failed store turns held replies into refusals", refusedWhenStopped},
		{"an incomplete request has no effect", halfRequest},
		{"malformed requests do not affect other clients", garbage},
		{"oversized requests are refused within the limits", oversize},
	} {
		for _, overLink := range []bool{false, true} {
			name := c.name
			if overLink {
				name += ", over a link"
			}
			if overLink && d.AtLeader {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test := func(t *testing.T, d Dialect) {
					d.overLink = overLink
					c.test(t, d)
				}
				if d.Within != nil {
					d.Within(t, test)
					return
				}
				test(t, d)
			})
		}
	}
}

func leasedOnce(t *testing.T, d Dialect) {
	s := d.open(t)
	producer, worker, other := d.dial(s, "producer"), d.dial(s, "worker"), d.dial(s, "other")
	bodies := []string{"x", "two words", string(bytes.Repeat([]byte("0123456789abcdef"), 4096))}
	for n, body := range bodies {
		d.submit(producer, n, body)
	}
	for _, body := range bodies {
		wantLease(t, d, worker, body)
	}
	wantNoLease(t, d, other)
	d.ping(producer)
}

func finishedIsGone(t *testing.T, d Dialect) {
	s := d.open(t)
	c := d.dial(s, "both")
	d.submit(c, 1, "body")
	d.Complete(c, wantLease(t, d, c, "body"))
	wantNoLease(t, d, c)
	if d.LeaseFor > 0 {
		s.Advance(2 * d.LeaseFor)
		wantNoLease(t, d, c)
	}
}

func leaseRunsOut(t *testing.T, d Dialect) {
	if d.LeaseFor == 0 {
		return // such jobs come from other protocols only; the front-end has its own tests for them
	}
	s := d.open(t)
	producer, worker, other := d.dial(s, "producer"), d.dial(s, "worker"), d.dial(s, "other")
	d.submit(producer, 1, "body")
	wantLease(t, d, worker, "body")
	s.Advance(d.LeaseFor - time.Millisecond)
	wantNoLease(t, d, other)
	s.Advance(time.Millisecond)
	wantLease(t, d, other, "body")
}

func workerHangsUp(t *testing.T, d Dialect) {
	s := d.open(t)
	producer, worker, other := d.dial(s, "producer"), d.dial(s, "worker"), d.dial(s, "other")
	d.submit(producer, 1, "body")
	wantLease(t, d, worker, "body")
	worker.Hangup()
	if d.Released {
		wantLease(t, d, other, "body")
		return
	}
	wantNoLease(t, d, other)
	if d.LeaseFor > 0 {
		s.Advance(d.LeaseFor)
		wantLease(t, d, other, "body")
	}
}

func clientHangsUp(t *testing.T, d Dialect) {
	s := d.open(t)
	producer := d.dial(s, "producer")
	d.submit(producer, 1, "body")
	producer.Hangup()
	wantLease(t, d, d.dial(s, "worker"), "body")
}

func survivesRestart(t *testing.T, d Dialect) {
	s := d.open(t)
	c := d.dial(s, "before")
	d.submit(c, 1, "done")
	d.submit(c, 2, "waiting")
	d.Complete(c, wantLease(t, d, c, "done"))
	s.Restart()
	c = d.dial(s, "after")
	wantLease(t, d, c, "waiting")
	wantNoLease(t, d, c)
}

func pipelined(t *testing.T, d Dialect) {
	s := d.open(t)
	c := d.dial(s, "producer")
	var all []byte
	const jobs = 300
	for n := range jobs {
		all = append(all, d.SubmitRequest(n, suiteQueue, "body")...)
	}
	c.SendBytes(append(all, d.Ping...))
	for n := range jobs {
		d.SubmitReply(c, n)
	}
	d.Pong(c)
	c.WantSilence()
	worker := d.dial(s, "worker")
	for range jobs {
		wantLease(t, d, worker, "body")
	}
	wantNoLease(t, d, worker)
}

// splitIsWhole sends the same requests in pieces of different sizes.
func splitIsWhole(t *testing.T, d Dialect) {
	var requests []byte
	for n := range 5 {
		requests = append(append(requests, d.SubmitRequest(n, suiteQueue, "body\r\n\x00")...), d.Ping...)
	}
	var whole []byte
	for _, step := range []int{len(requests), 1, 2, 3, 7, 64} {
		s := d.open(t)
		c := d.dial(s, "client")
		c.SendIn(step, requests)
		got := d.same(c.Rest())
		if whole == nil {
			whole = got
		}
		if !bytes.Equal(got, whole) {
			t.Errorf("in pieces of %d bytes\n got %q\nwant %q", step, got, whole)
		}
	}
}

func heldUntilCommit(t *testing.T, d Dialect) {
	s, gate := d.openGated(t)
	c := d.dial(s, "producer")
	gate.close()
	c.SendBytes(append(d.SubmitRequest(1, suiteQueue, "body"), d.Ping...))
	s.turn()
	if len(c.received) > 0 {
		t.Fatalf("got %q before anything was committed", c.received)
	}
	gate.open()
	d.SubmitReply(c, 1)
	d.Pong(c)
}

// wokenByItsCommit sends each command while a change of another client is not durable. If the replies of the broker say
// something about jobs, the answer waits for the commit. It leaves then, although the commit wakes only the clients
// that depend on it.
func wokenByItsCommit(t *testing.T, d Dialect) {
	if len(d.Commands) == 0 {
		t.Fatal("the dialect names no commands")
	}
	for _, name := range d.Commands {
		if !slices.ContainsFunc(d.Exchanges, func(e Exchange) bool { return e.Command == name }) {
			t.Errorf("%s has no exchange", name)
		}
	}
	for _, e := range d.Exchanges {
		if !slices.Contains(d.Commands, e.Command) {
			t.Errorf("the front-end has no command %s", e.Command)
		}
		s, gate := d.openGated(t)
		producer, c := d.dial(s, "producer"), d.dial(s, "client")
		d.submit(producer, 1, "body")
		c.Send(e.Before)
		if before := c.Rest(); e.Fill != nil {
			e.Send = e.Fill(before)
		}
		gate.close()
		producer.SendBytes(d.SubmitRequest(2, suiteQueue, "body"))
		revealed := gate.revealed.Load()
		c.Send(e.Send)
		early := d.unheld(c)
		if leaked := len(early) > 0 && gate.revealed.Load() > revealed; leaked != e.Early {
			t.Errorf("%s: before the commit of %.80q: %.80q, want early %v", e.Command, e.Send, early, e.Early)
		}
		gate.open()
		switch answer := d.unheld(c); {
		case c.out.Held() > 0:
			t.Errorf("%s: the commit of %.80q did not wake the connection", e.Command, e.Send)
		case len(answer) == 0 && !c.closed:
			t.Errorf("%s: %.80q is not answered", e.Command, e.Send)
		}
	}
}

// unheld is Client.Unheld once the front-end has settled.
func (d Dialect) unheld(c *Client) []byte {
	if d.Settle != nil {
		d.Settle()
	}
	return c.Unheld()
}

func (d Dialect) same(output []byte) []byte {
	if d.Same == nil {
		return output
	}
	return d.Same(output)
}

// wantSame reads a reply that is the same as another.
func (d Dialect) wantSame(c *Client, reply []byte) {
	c.stage.t.Helper()
	if got := c.Read(len(reply)); !bytes.Equal(d.same(got), d.same(reply)) {
		c.stage.fatalf("%s: got %q, want %q", c.Name, got, reply)
	}
}

// refusedWhenStopped fails the store while two replies are held. The reply to the ping is refused too if it says
// something about jobs, and sent if not. A node that follows loses its link then: no held reply is sent.
func refusedWhenStopped(t *testing.T, d Dialect) {
	s, gate := d.openGated(t)
	c := d.dial(s, "producer")
	gate.close()
	c.SendBytes(d.SubmitRequest(1, suiteQueue, "body"))
	revealed := gate.revealed.Load()
	c.SendBytes(d.Ping)
	pingReveals := gate.revealed.Load() > revealed
	gate.fail()
	if l, follows := s.Broker.(*linked); follows {
		l.hangUp()
		if s.until(func() bool { return c.closed || len(c.received) > 0 }); c.closed {
			c.WantSilence()
		} else if status, body := c.HTTPResponse(); status < 500 { // the core knows no connection of HTTP
			t.Fatalf("answered %d %s", status, body)
		}
		return
	}
	s.turn()
	refusal := c.session.Refusal()
	if len(refusal) == 0 {
		t.Fatal("the front-end has no refusal")
	}
	d.wantSame(c, refusal)
	if pingReveals {
		d.wantSame(c, refusal)
		c.WantSilence()
		return
	}
	d.Pong(c)
}

func halfRequest(t *testing.T, d Dialect) {
	s := d.open(t)
	request := d.SubmitRequest(1, suiteQueue, "body")
	for n := range request {
		c := d.dial(s, "quitter")
		c.SendBytes(request[:n])
		if n%2 == 0 {
			c.EOF()
		} else {
			c.Hangup()
		}
	}
	c := d.dial(s, "client")
	wantNoLease(t, d, c)
	d.ping(c)
}

func garbage(t *testing.T, d Dialect) {
	s := d.open(t)
	bystander := d.dial(s, "bystander")
	pieces := d.Garbage
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		p := make([]byte, random.IntN(300))
		for i := range p {
			p[i] = byte(random.UintN(256))
		}
		pieces = append(pieces, p)
		// A good request with one byte changed.
		q := d.SubmitRequest(1, "elsewhere", "body")
		q[random.IntN(len(q))] = byte(random.UintN(256))
		pieces = append(pieces, q)
	}
	for _, p := range pieces {
		c := d.dial(s, "attacker")
		c.SendBytes(p)
		c.SendBytes([]byte("\r\n\r\n"))
		c.Hangup()
		d.ping(bystander)
	}
	bystander.WantSilence()
}

// oversize sends a request that announces too much. The session must close the connection, or discard the request as it
// arrives.
func oversize(t *testing.T, d Dialect) {
	s := d.open(t)
	bystander, c := d.dial(s, "bystander"), d.dial(s, "sender")
	c.SendIn(len(d.Oversize), d.Oversize)
	limit := s.Front.Bounds().MaxInput
	chunk := bytes.Repeat([]byte("x"), 64<<10)
	for sent := 0; sent < 2*limit && !c.Closed(); sent += len(chunk) {
		c.SendIn(len(chunk), chunk)
		if len(c.unread) > limit {
			t.Fatalf("%d unread bytes, more than the limit of %d", len(c.unread), limit)
		}
	}
	d.ping(bystander)
}

// wantLease leases a job and compares its body.
func wantLease(t *testing.T, d Dialect, c *Client, body string) Leased {
	t.Helper()
	job, ok := d.Lease(c, suiteQueue)
	if !ok {
		t.Fatalf("%s: no job, want one with body %.40q", c.Name, body)
	}
	if job.Body != body {
		t.Fatalf("%s: leased body %.40q, want %.40q", c.Name, job.Body, body)
	}
	return job
}

// wantNoLease checks that there is no job to lease.
func wantNoLease(t *testing.T, d Dialect, c *Client) {
	t.Helper()
	if job, ok := d.Lease(c, suiteQueue); ok {
		t.Fatalf("%s: leased %.40q, want nothing", c.Name, job.Body)
	}
}
