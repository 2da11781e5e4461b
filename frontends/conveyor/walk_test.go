package conveyor

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// turnsOf is the front-end with a function that runs before each later turn of a session.
type turnsOf struct {
	*Frontend
	between func(*session)
}

// Open implements frontends.Frontend.
func (f *turnsOf) Open(c frontends.Conn) frontends.Session {
	return &turns{f.Frontend.Open(c).(*session), f}
}

// turns is a session of turnsOf.
type turns struct {
	*session
	front *turnsOf
}

// Deliver implements frontends.Session.
func (s *turns) Deliver() {
	s.front.between(s.session)
	s.session.Deliver()
}

// setupTurns opens a stage on which between runs before each later turn.
func setupTurns(t *testing.T) (*frontendtest.Stage, *turnsOf) {
	front := &turnsOf{between: func(*session) {}}
	return frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		front.Frontend = New(access.Unrestricted(b, core.Conveyor), Options{})
		return front
	}, frontendtest.InMemory), front
}

// many fills a broker with jobs: as many failed, running and scheduled ones in each of some queues. A queue's worker is
// called w-QUEUE.
func many(t *testing.T, b core.Broker, jobs int, queues ...string) {
	t.Helper()
	c := b.Open(core.ClientOptions{Protocol: core.Conveyor, Wake: func() {}})
	do := func(op core.Op) []core.Reply {
		replies := b.Do(c, []core.Op{op}, nil)
		if len(replies) == 0 || replies[0].Kind == core.Failed {
			t.Fatalf("%T: %v", op, replies)
		}
		return replies
	}
	id := 0
	submit := func(queue string, at core.Instant) {
		id++
		do(&core.Submit{Job: &core.Job{
			ID: idOf(id), Origin: core.Conveyor, Queue: queue, Type: "T", ReadyAt: at, MaxFails: 1,
			LeaseFor: time.Hour, Exhausted: core.ExhaustedBury,
		}})
	}
	lease := func(queue string) uint64 {
		op := &core.Lease{Queues: []string{queue}, Holder: core.HeldByWorker, Worker: "w-" + queue}
		return do(op)[0].Seq
	}
	for _, queue := range queues {
		for range jobs {
			submit(queue, 0)
			do(&core.Fail{Ref: core.Ref{Seq: lease(queue)}, Final: true, Authority: core.ByAnyone})
			submit(queue, 0)
			lease(queue)
			submit(queue, b.Now().Add(time.Hour))
		}
	}
	b.Close(c)
}

// Commands that go through many jobs take several turns, so that others are served in between. The commands behind them
// wait, and a client that has closed its sending side gets the whole answer.
func TestLongWalksTakeTurns(t *testing.T) {
	t.Parallel()
	s, front := setupTurns(t)
	const jobs = 4*maxRange + 500
	many(t, s.Broker, jobs, "q", "other:q")
	c, other := dial(t, s, "c"), dial(t, s, "other")
	for _, test := range []struct {
		command string
		want    int // the number, or how many jobs are listed
	}{
		{"ZCARD N:scheduled", jobs},
		{"LLEN N:failed", jobs},
		{"SCARD N:jobs:active", jobs},
		{"SCARD N:worker:active:w-QUEUE", jobs},
		{"SMEMBERS N:jobs:active", jobs},
		{"SMEMBERS N:worker:active:w-QUEUE", jobs},
		{"LRANGE N:failed 0 9", 10},
		{"LRANGE N:failed -3 -1", 3},
		{"ZRANGE N:scheduled 4400 4402", 3},
		{"ZRANGE N:scheduled -2 -1", 2},
	} {
		for namespace, queue := range map[string]string{"conv": "q", "other": "other:q"} {
			command := strings.NewReplacer("N:", namespace+":", "QUEUE", queue).Replace(test.command)
			ask := append(encodeCommand(strings.Fields(command)...), encodeCommand("PING")...)
			served := 0
			front.between = func(walks *session) {
				if walks.walking == nil {
					return // it goes on with its input
				}
				served++
				other.want("PONG", "PING")
			}
			c.SendBytes(ask)
			if got := answered(c); got != test.want || c.next() != "PONG" {
				t.Errorf("%s: got %d, want %d", command, got, test.want)
			}
			if served < 4 {
				t.Errorf("%s: another client is served %d times in between", command, served)
			}
			front.between = func(*session) {}
			half := dial(t, s, "half-closed")
			half.SendBytes(ask)
			half.EOF()
			if got := answered(half); got != test.want || half.next() != "PONG" {
				t.Errorf("%s: a half-closed client gets %d", command, got)
			}
		}
	}
}

// answered reads a number, or an array, of which it returns the length.
func answered(c client) int {
	line := strings.TrimSuffix(c.ReadUntil("\r\n"), "\r\n")
	n, err := strconv.Atoi(line[1:])
	if err != nil {
		return -1
	}
	for i := 0; line[0] == '*' && i < n; i++ {
		c.next()
	}
	return n
}

// A range after a count has the jobs of the chosen positions.
func TestRangesOfWalksHaveTheirJobs(t *testing.T) {
	t.Parallel()
	s, _ := setupTurns(t)
	const jobs = maxRange + 100
	many(t, s.Broker, jobs, "q")
	c := dial(t, s, "c")
	one := func(words ...string) string {
		c.SendBytes(encodeCommand(words...))
		if line := c.ReadUntil("\r\n"); line != "*1\r\n" {
			t.Fatalf("%s: got %q", words, line)
		}
		return uuidOf(t, c.next())
	}
	for i := range 3 { // many submits a failed, a running and a scheduled job in turns
		at := strconv.Itoa(jobs - 1 - i)
		if got := one("ZRANGE", "conv:scheduled", at, at); got != idOf(3*(jobs-i)) {
			t.Errorf("scheduled job %d from the end is %s", i, got)
		}
		if got := one("LRANGE", "conv:failed", at, at); got != idOf(3*i+1) {
			t.Errorf("failed job %d from the end is %s", i, got)
		}
	}
	c.want("ERR a range has at most 1000 jobs", "LRANGE", "conv:failed", "0", "-1")
	c.want("ERR a range has at most 1000 jobs", "ZRANGE", "conv:scheduled", "0", "1000")
}

// The number of jobs of a namespace is exact, also above the number of jobs that one search of the broker examines.
func TestCountsOfNamespacesAreExact(t *testing.T) {
	t.Parallel()
	s, _ := setupTurns(t)
	const jobs = 20_500
	producer, due := s.Broker.Open(core.ClientOptions{Protocol: core.Conveyor}), s.Clock.Now().Add(time.Hour)
	for n := range jobs {
		j := &core.Job{ID: idOf(n), Origin: core.Conveyor, Queue: "other:q", Type: "T", ReadyAt: due}
		s.Broker.Do(producer, []core.Op{&core.Submit{Job: j}}, nil)
	}
	c := dial(t, s, "c")
	c.want(strconv.Itoa(jobs), "ZCARD", "other:scheduled")
}
