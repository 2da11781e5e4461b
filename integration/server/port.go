package server

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Ports lie below the range that the kernel uses for outgoing connections: a broker that is killed and restarted must find
// its ports free, whatever connections clients opened meanwhile.
const (
	firstPort = 12000
	lastPort  = 29999
)

// given are the addresses that FreeAddr has returned: their owners may not listen yet.
var given sync.Map

// FreeAddr returns a loopback address on which nobody listens. It returns each address once.
func FreeAddr() (string, error) {
	for range 200 {
		addr := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(lastPort-firstPort+1))
		if _, twice := given.LoadOrStore(addr, nil); twice {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return "", err
		}
		return addr, nil
	}
	return "", fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

// WaitListening waits until addr accepts connections; it fails if p ends.
func WaitListening(p *Process, addr string, atMost time.Duration) error {
	deadline := time.Now().Add(atMost)
	for {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return c.Close()
		}
		if p.Exited() {
			return fmt.Errorf("%s exited before it listened on %s:\n%s", p.Name, addr, p.Tail())
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not listen on %s after %v:\n%s", p.Name, addr, atMost, p.Tail())
		}
		time.Sleep(10 * time.Millisecond)
	}
}
