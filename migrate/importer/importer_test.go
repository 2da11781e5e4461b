package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// serve answers every connection with a greeting, and each line with a reply.
func serve(t *testing.T, greeting, reply string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return answer(t, l, func(c net.Conn) {
		_, _ = io.WriteString(c, greeting)
		buffer := make([]byte, 4096)
		for {
			if _, err := c.Read(buffer); err != nil {
				return
			}
			_, _ = io.WriteString(c, reply)
		}
	})
}

// answer accepts connections until the test ends, and calls talk for each of them.
func answer(t *testing.T, l net.Listener, talk func(net.Conn)) (address string) {
	t.Helper()
	t.Cleanup(func() { _ = l.Close() }) // ends the loop below
	go func() {                         // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the connection
				defer func() { _ = c.Close() }() // the client has its reply
				talk(c)
			}()
		}
	}()
	return l.Addr().String()
}

// TestOtherServersAreRefused points each kind of source at a server of another kind.
func TestOtherServersAreRefused(t *testing.T) {
	t.Parallel()
	beanstalkd, http := serve(t, "", "UNKNOWN_COMMAND\r\n"), serve(t, "", "HTTP/1.1 400 Bad Request\r\n\r\n")
	gearmand := func(at string) (Source, error) {
		s, err := OpenGearman(Servers{Source: at, Target: http})
		if err == nil {
			defer s.Close()
			_, err = s.Count()
		}
		return nil, err
	}
	for name, open := range map[string]func() (Source, error){
		"gearmand at beanstalkd": func() (Source, error) { return gearmand(beanstalkd) },
		"faktory at a web server": func() (Source, error) {
			return OpenFaktory(Servers{Source: serve(t, "HTTP/1.1 200 OK\r\n", ""), Target: beanstalkd}, false)
		},
		"redis at beanstalkd": func() (Source, error) {
			return OpenRedis(Servers{Source: beanstalkd, Target: serve(t, "nonsense\r\n", "")}, false)
		},
		"beanstalkd at web server": func() (Source, error) { return OpenBeanstalk(Servers{Source: http}, nil) },
		"no address":               func() (Source, error) { return OpenGearman(Servers{}) },
	} {
		if _, err := open(); err == nil || strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTallyAddsUpByQueueAndState(t *testing.T) {
	t.Parallel()
	var sum tally
	sum.add([]Count{{"b", Ready, 3}, {"a", Dead, 1}, {"empty", Ready, 0}}, func(r *Row, n int) { r.Before += n })
	sum.add([]Count{{"b", Ready, 2}, {"b", Ready, 1}}, func(r *Row, n int) { r.Moved += n })
	sum.add([]Count{{"a", Dead, 1}}, func(r *Row, n int) { r.Left += n })
	r := sum.report()
	want := []Row{{Queue: "a", State: Dead, Before: 1, Left: 1}, {Queue: "b", State: Ready, Before: 3, Moved: 3}}
	if len(r.Rows) != 2 || r.Rows[0] != want[0] || r.Rows[1] != want[1] || r.Before != 4 || r.Moved != 3 ||
		r.Left != 1 {
		t.Errorf("%+v", r)
	}
}

func TestPriorityLevelsGoFromHighToLow(t *testing.T) {
	t.Parallel()
	levels := priorityLevels{1, 2, 1}
	for i, want := range []int{1, 0, 0, -1, 0} { // after the counts are used up: normal
		if got := levels.next(); got != want {
			t.Errorf("job %d has priority %d, want %d", i, got, want)
		}
	}
}

// interrupted is a source whose only batch interrupts the import.
type interrupted struct {
	interrupt func()
	left      int
}

func (s *interrupted) Move(ctx context.Context) (Batch, error) {
	s.interrupt()
	if err := ctx.Err(); err != nil {
		return Batch{}, err // like a submission with an unknown outcome
	}
	s.left = 0
	return Batch{Moved: []Count{{"q", Ready, 1}}}, nil
}

func (s *interrupted) Count() ([]Count, error)      { return []Count{{"q", Ready, s.left}}, nil }
func (s *interrupted) Paused() ([]string, error)    { return nil, nil }
func (s *interrupted) Finish(context.Context) error { return nil }
func (s *interrupted) Reason(_, _ string) string    { return "" }
func (s *interrupted) Only([]string)                {}
func (s *interrupted) Close()                       {}

func TestInterruptedImportFinishesItsBatch(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := Run(ctx, &interrupted{interrupt: cancel, left: 1}, Options{
		Follow: true, Progress: func(int, int) {}, Pause: func(context.Context, time.Duration) {},
	})
	if err != nil || r.Moved != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// People paste errors into tickets.
func TestPasswordsAreNotPartOfErrors(t *testing.T) {
	t.Parallel()
	_, _, err := new(Servers).dialPatient("tcp://:s/ecret@127.0.0.1:7419", FaktoryPort)
	if err == nil || strings.Contains(err.Error(), "ecret") || !strings.Contains(err.Error(), "%40") {
		t.Errorf("the error is %v", err)
	}
}

// failing is a source whose Move fails. Its count at the end fails too if gone is set.
type failing struct {
	interrupted
	gone   bool
	counts int
}

var errMove, errCount = errors.New("broken"), errors.New("broken pipe")

func (s *failing) Move(context.Context) (Batch, error) {
	return Batch{Moved: []Count{{"q", Ready, 1}}}, errMove
}

func (s *failing) Count() ([]Count, error) {
	if s.counts++; s.counts > 1 && s.gone {
		return nil, errCount
	}
	return []Count{{"q", Ready, 3}, {"q", Leased, 2}}, nil
}

func (s *failing) Reason(string, string) string { return "came while the import ran: import again" }

func TestReportOfAFailedImportClaimsNothing(t *testing.T) {
	t.Parallel()
	run := func(s *failing) (Report, error) {
		return Run(t.Context(), s, Options{Progress: func(int, int) {}, Pause: func(context.Context, time.Duration) {}})
	}
	r, err := run(&failing{gone: true})
	if !r.LeftUnknown || r.Left != 0 || r.Moved != 1 || r.Rows[0].Reason != reasonUnknown {
		t.Errorf("without a source: %+v", r)
	}
	if !errors.Is(err, errMove) || errors.Is(err, errCount) {
		t.Errorf("without a source: %v", err)
	}
	r, err = run(&failing{})
	if !errors.Is(err, errMove) || r.LeftUnknown || r.Left != 5 {
		t.Errorf("with a source: %+v, %v", r, err)
	}
	if len(r.Rows) != 2 || r.Rows[0].Reason != reasonFailedTaken || r.Rows[1].Reason != reasonFailed {
		t.Errorf("reasons: %+v", r.Rows)
	}
}

func TestErrorsNameTheirSide(t *testing.T) {
	t.Parallel()
	closing := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return answer(t, l, func(net.Conn) {})
	}
	http := serve(t, "", "HTTP/1.1 400 Bad Request\r\n\r\n")
	for name, c := range map[string]struct {
		open func() (Source, error)
		want string
	}{
		"beanstalkd that is a web server": {
			func() (Source, error) { return OpenBeanstalk(Servers{Source: http}, nil) },
			"source: stats: the port speaks HTTP; name the port of the server's own protocol",
		},
		"faktory that closes": {
			func() (Source, error) { return OpenFaktory(Servers{Source: closing(), Target: closing()}, false) },
			"source: the server closed the connection before it greeted; is this Faktory's port, and does it serve clients?",
		},
		"broker that closes": {
			func() (Source, error) {
				return OpenRedis(Servers{Source: serve(t, "", "+PONG\r\n"), Target: closing()}, false)
			},
			"this broker: the server closed the connection before it greeted; is this Faktory's port, and does it serve clients?",
		},
	} {
		if _, err := c.open(); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Run(t.Context(), &failing{gone: true}, Options{
		Progress: func(int, int) {}, Pause: func(context.Context, time.Duration) {},
	})
	if err == nil || err.Error() != "source: broken" {
		t.Errorf("%v", err)
	}
}

func TestDryRunSaysWhatFaktorysProtocolCannotMove(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	faktory := answer(t, l, func(c net.Conn) {
		info := `{"faktory":{"queues":{"q":2},"sets":{"scheduled":1,"retries":0,"dead":3,"working":1}}}`
		for _, reply := range []string{"+HI {\"v\":2}\r\n", "+OK\r\n", fmt.Sprintf("$%d\r\n%s\r\n", len(info), info)} {
			_, _ = io.WriteString(c, reply)
			if _, err := c.Read(make([]byte, 4096)); err != nil {
				return
			}
		}
	})
	s, err := OpenFaktory(Servers{Source: faktory, Target: serve(t, "+HI {\"v\":2}\r\n", "+OK\r\n")}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := Look(s)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, row := range r.Rows {
		reasons[row.State] = row.Reason
	}
	if redis := "not shown by Faktory's protocol: import from its Redis"; reasons[Ready] != "" ||
		reasons[Scheduled] != redis || reasons[Dead] != redis || !strings.Contains(reasons[Leased], "with workers") {
		t.Errorf("%q", reasons)
	}
}
