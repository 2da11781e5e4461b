package importer

import (
	"context"
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
	if len(r.Rows) != 2 || r.Rows[0] != want[0] || r.Rows[1] != want[1] || r.Before != 4 || r.Moved != 3 || r.Left != 1 {
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
