package switchover

import (
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	// dialWithin limits the time to connect to the broker.
	dialWithin = 2 * time.Second
	// dialAgain is the time for which a failure to connect is returned without another attempt, and the pause between
	// attempts.
	dialAgain = 500 * time.Millisecond
	// writeWithin limits the time in which the broker must read a request.
	writeWithin = 10 * time.Second
	// replyWithin limits the time in which it must reply. Faktory's FETCH takes two seconds.
	replyWithin = 10 * time.Second
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

	mu     sync.Mutex // guards the fields below
	failed error
	until  time.Time // the failure is returned until then
}

// check reports whether the broker accepts connections.
func (b *broker) check() error {
	conn, err := b.dial()
	if err == nil {
		_ = conn.Close() // nothing was sent
	}
	return err
}

// dial connects. It returns a recent failure again without an attempt.
func (b *broker) dial() (net.Conn, error) {
	b.mu.Lock()
	failed, until := b.failed, b.until
	b.mu.Unlock()
	if failed != nil && time.Now().Before(until) {
		return nil, failed
	}
	began := time.Now()
	conn, err := net.DialTimeout("tcp", b.address, dialWithin)
	if err != nil {
		err = fmt.Errorf("the broker cannot be reached: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// a slow failure is kept longer, so that few clients wait for it
	b.failed, b.until = err, time.Now().Add(max(dialAgain, 5*time.Since(began)))
	return conn, err
}
