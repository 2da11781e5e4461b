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
	writeWithin = 30 * time.Second
)

// broker opens connections to the broker.
type broker struct {
	address string

	mu       sync.Mutex // guards what follows
	failed   error
	failedAt time.Time
}

// dial connects. A recent failure is returned again without a try.
func (b *broker) dial() (net.Conn, error) {
	b.mu.Lock()
	failed, at := b.failed, b.failedAt
	b.mu.Unlock()
	if failed != nil && time.Since(at) < dialAgain {
		return nil, failed
	}
	conn, err := net.DialTimeout("tcp", b.address, dialWithin)
	if err != nil {
		err = fmt.Errorf("the broker cannot be reached: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed, b.failedAt = err, time.Now()
	return conn, err
}
