package switchover

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// dialWithin limits the time to connect to the broker. With more patience it is a fifth of that.
	dialWithin = 2 * time.Second
	// dialAgain is the time for which a failure to connect is returned without another attempt, and the pause between
	// attempts.
	dialAgain = 500 * time.Millisecond
	// replyWithin limits the time in which the broker must reply. Faktory's FETCH takes two seconds.
	replyWithin = 10 * time.Second
	// checkWithin limits the time of a check, for which somebody waits.
	checkWithin = 30 * time.Second
)

// replyDeadline is the time at which a broker with this many pending replies counts as lost.
func replyDeadline(owed int, within time.Duration) time.Time {
	if owed == 0 {
		return time.Time{}
	}
	return time.Now().Add(within)
}

// broker opens connections to the broker.
type broker struct {
	address string
	within  time.Duration // limits the time to connect

	mu     sync.Mutex // guards the fields below
	failed error
	until  time.Time // the failure is returned until then
}

// errNoLeader means that the broker accepts connections and answers nothing.
var errNoLeader = errors.New("its cluster may have no leader: 'broker healthcheck' says whether it serves clients")

// check reports whether the broker serves clients. ask sends it a request and reads the reply.
func (b *broker) check(within time.Duration, ask func(net.Conn, *bufio.Reader) error) error {
	asked := false
	conn, _, err := b.open(min(within, checkWithin), func(conn net.Conn, in *bufio.Reader) error {
		asked = true
		return ask(conn, in)
	})
	if err == nil {
		return conn.Close() // the broker has replied
	}
	if broken := net.Error(nil); asked && (errors.Is(err, io.EOF) || errors.As(err, &broken)) {
		return fmt.Errorf("the broker at %s accepts connections and does not answer; %w", b.address, errNoLeader)
	}
	return err
}

// errLate means that a connection has ended during the greeting. A broker waits for it for a short time only.
var errLate = errors.New("the broker has closed the connection")

// open connects and greets. If the greeting was late, as on a busy machine, it tries again.
func (b *broker) open(
	within time.Duration, greet func(net.Conn, *bufio.Reader) error,
) (net.Conn, *bufio.Reader, error) {
	for attempt := 1; ; attempt++ {
		conn, err := b.dial()
		if err != nil {
			return nil, nil, err
		}
		in := bufio.NewReaderSize(conn, 16<<10)
		_ = conn.SetDeadline(time.Now().Add(within)) // of a new connection
		if err = greet(conn, in); err == nil {
			_ = conn.SetDeadline(time.Time{}) // likewise
			return conn, in, nil
		}
		_ = conn.Close() // not usable
		if !errors.Is(err, errLate) || errors.Is(err, os.ErrDeadlineExceeded) || attempt == attempts {
			return nil, nil, err
		}
	}
}

// attempts is how often open connects at most.
const attempts = 3

// dial connects. It returns a recent failure again without an attempt.
func (b *broker) dial() (net.Conn, error) {
	b.mu.Lock()
	failed, until := b.failed, b.until
	b.mu.Unlock()
	if failed != nil && time.Now().Before(until) {
		return nil, failed
	}
	began := time.Now()
	conn, err := net.DialTimeout("tcp", b.address, b.within)
	if err != nil {
		err = fmt.Errorf("the broker cannot be reached: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// a slow failure is kept longer, so that few clients wait for it
	b.failed, b.until = err, time.Now().Add(max(dialAgain, 5*time.Since(began)))
	return conn, err
}
