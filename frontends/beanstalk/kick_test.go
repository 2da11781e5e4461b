package beanstalk

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// openBuried opens a stage with buried jobs in the default tube.
func openBuried(t *testing.T, jobs int) (*frontendtest.Stage, *frontendtest.Client) {
	t.Helper()
	s, _ := setupCounting(t, Options{}, unrestricted)
	c := s.Dial("kicker")
	for range jobs {
		c.Send("put 0 0 60 1\r\nx\r\nreserve\r\n")
		c.ReadUntil("RESERVED ")
		id := strings.Fields(c.ReadUntil("\r\n"))[0]
		c.ReadUntil("\r\n")
		c.Send("bury " + id + " 0\r\n")
		c.Want("BURIED\r\n")
	}
	return s, c
}

// inTube counts the jobs of the default tube in two states.
func inTube(s *frontendtest.Stage) (dead, ready int) {
	q := core.DoOnce(s.Broker, core.Internal, &core.InspectQueue{Queue: "default"})[0].Queues[0]
	return q.Dead, q.High + q.Normal + q.Low
}

// turned is a connection whose turns the test gives.
type turned struct {
	out   frontends.Outbox
	woken chan struct{}
}

// openTurned opens a session on a connection whose turns the test gives.
func openTurned(s *frontendtest.Stage) (*turned, *session) {
	c := &turned{woken: make(chan struct{}, 1)}
	return c, s.Front.Open(c).(*session)
}

// await waits until the broker or the session asks for another turn.
func (c *turned) await(t *testing.T) {
	t.Helper()
	select {
	case <-c.woken:
	case <-time.After(time.Minute):
		t.Fatal("the session is not woken")
	}
}

func (c *turned) Out() *frontends.Outbox { return &c.out }
func (c *turned) Backpressured() bool    { return false }
func (c *turned) CloseAfterFlush()       {}
func (c *turned) Abort()                 {}
func (c *turned) RemoteAddr() net.Addr   { return nil }
func (c *turned) FD() int                { return -1 }

func (c *turned) Wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

func TestKickServesOthersInBetween(t *testing.T) {
	t.Parallel()
	const jobs = 5*kickStep + 3
	s, other := openBuried(t, jobs)
	c, kicker := openTurned(s)
	const kick, put = "kick 1000000\r\n", "put 7 0 60 1\r\ny\r\nkick 5\r\n"
	if n := kicker.Feed([]byte(kick + put)); n != len(kick) {
		t.Errorf("%d bytes of input are taken before the kick is answered", n)
	}
	for turns := 1; c.out.Len() == 0; turns++ {
		if dead, _ := inTube(s); dead != jobs-turns*kickStep {
			t.Errorf("%d of %d jobs are buried after %d turns", dead, jobs, turns)
		}
		if n := kicker.Feed([]byte(put)); n != 0 || c.out.Len() != 0 {
			t.Fatal("the next command runs during the kick")
		}
		c.await(t)
		other.Send("put 0 0 60 1\r\nz\r\n")
		other.Want(fmt.Sprintf("INSERTED %d\r\n", jobs+turns))
		kicker.Deliver()
	}
	if n := kicker.Feed([]byte(put)); n != len(put) {
		t.Errorf("%d bytes of input are taken after the kick", n)
	}
	if got, want := string(c.out.Buf()), fmt.Sprintf("KICKED %d\r\nINSERTED %d\r\nKICKED 0\r\n", jobs,
		jobs+6); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKickKicksNoMoreThanItsBound(t *testing.T) {
	t.Parallel()
	const jobs = 3 * kickStep
	s, c := openBuried(t, jobs)
	c.Send(fmt.Sprintf("kick %d\r\n", 2*kickStep+1))
	c.Want(fmt.Sprintf("KICKED %d\r\n", 2*kickStep+1))
	if dead, ready := inTube(s); dead != jobs-2*kickStep-1 || ready != 2*kickStep+1 {
		t.Errorf("%d jobs are buried and %d ready", dead, ready)
	}
}

func TestKickOfJobsThatAreBuriedAgainEnds(t *testing.T) {
	t.Parallel()
	const jobs = 2 * kickStep
	s, _ := openBuried(t, jobs)
	c, kicker := openTurned(s)
	kicker.Feed([]byte("kick 4000000000\r\n"))
	turns := 1
	for ; c.out.Len() == 0 && turns < 10; turns++ {
		c.await(t)
		ready := core.DoOnce(s.Broker, core.Internal,
			&core.ListJobs{Queue: "default", State: core.Ready, Limit: 1000, Brief: true})[0]
		for i := range ready.Jobs {
			core.DoOnce(s.Broker, core.Internal, &core.Bury{Ref: core.Ref{Seq: ready.Jobs[i].Seq}})
		}
		kicker.Deliver()
	}
	if turns != 2 || string(c.out.Buf()) != fmt.Sprintf("KICKED %d\r\n", jobs) {
		t.Errorf("after %d turns: %q", turns, c.out.Buf())
	}
}

func TestKickEndsWithItsClient(t *testing.T) {
	t.Parallel()
	const jobs = 5 * kickStep
	s, _ := openBuried(t, jobs)
	_, kicker := openTurned(s)
	kicker.Feed([]byte("kick 1000000\r\n"))
	kicker.Closed()
	kicker.Deliver()
	if dead, _ := inTube(s); dead != jobs-kickStep {
		t.Errorf("%d of %d jobs are buried", dead, jobs)
	}
}

func TestKickIsAnsweredWhenTheServerStops(t *testing.T) {
	t.Parallel()
	s, _ := openBuried(t, 5*kickStep)
	c, kicker := openTurned(s)
	kicker.Feed([]byte("kick 1000000\r\n"))
	kicker.Stop()
	if got, want := string(c.out.Buf()), fmt.Sprintf("KICKED %d\r\n", kickStep); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHalfClosedClientGetsTheAnswerOfItsKick(t *testing.T) {
	t.Parallel()
	const jobs = 5 * kickStep
	_, c := openBuried(t, jobs)
	c.Send("kick 1000000\r\nkick 1\r\n")
	c.EOF()
	c.Want(fmt.Sprintf("KICKED %d\r\nKICKED 0\r\n", jobs))
	c.WantClosed()
}
