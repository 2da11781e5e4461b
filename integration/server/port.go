package server

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Ports are taken from below the range from which the kernel gives ports to outgoing connections: a broker that is
// killed and started again must find its ports free, whatever connections the clients opened in between.
const (
	firstPort = 12000
	lastPort  = 29999
)

// given are the addresses that this process was given: whoever has one may not listen on it yet.
var given sync.Map

// FreeAddr answers a loopback address on which nobody listens, each one once.
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

// WaitListening waits until something accepts connections at addr, or p has ended.
func WaitListening(p *Process, addr string, atMost time.Duration) error {
	deadline := time.Now().Add(atMost)
	for {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return c.Close()
		}
		if p.Exited() {
			return fmt.Errorf("%s ended before it listened on %s:\n%s", p.Name, addr, p.Tail())
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not listen on %s after %v:\n%s", p.Name, addr, atMost, p.Tail())
		}
		time.Sleep(10 * time.Millisecond)
	}
}
