package switchover

import (
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	// dialWithin bounds how long a connection to the broker may take.
	dialWithin = 2 * time.Second
	// dialAgain is how long a failure to connect stands for further ones, and the pause between tries.
	dialAgain = 500 * time.Millisecond
	// writeWithin bounds how long the broker may leave a request unread.
	writeWithin = 10 * time.Second
	// replyWithin bounds how long it may leave one without its reply. Faktory's FETCH takes two seconds.
	replyWithin = 10 * time.Second
)

// replyDeadline is when a broker counts as lost that owes so many replies.
func replyDeadline(owed int, within time.Duration) time.Time {
	if owed == 0 {
		return time.Time{}
	}
	return time.Now().Add(within)
}

// broker opens connections to the broker.
type broker struct {
	address string

	mu     sync.Mutex // guards what follows
	failed error
	until  time.Time // the failure stands
}

// dial connects. A recent failure is returned again without a try.
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
	b.failed, b.until = err, time.Now().Add(max(dialAgain, 5*time.Since(began))) // clients that wait for a failure are few
	return conn, err
}
