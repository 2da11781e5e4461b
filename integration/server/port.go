package server

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Ports lie below the range that the kernel uses for outgoing connections: a broker that is killed and restarted must
// find its ports free, whatever connections clients opened meanwhile.
const (
	firstPort = 12000
	lastPort  = 29999
)

// blockSize is how many ports a test program takes at once, so that programs that run side by side never give the same
// one.
const blockSize = 500

// ports are those that this program may give.
var ports struct {
	mu        sync.Mutex
	claims    []net.Listener // on the first port of each block: it tells other programs that the block is taken
	next, end int
}

// FreeAddr returns a loopback address on which nobody listens. It returns each address once, in this program and in
// others that run beside it.
func FreeAddr() (string, error) {
	ports.mu.Lock()
	defer ports.mu.Unlock()
	for {
		if ports.next == ports.end {
			if err := claimBlock(); err != nil {
				return "", err
			}
		}
		addr := loopback(ports.next)
		ports.next++
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		return addr, l.Close()
	}
}

// claimBlock takes a block of ports for this program until it ends. ports.mu is held.
func claimBlock() error {
	blocks := (lastPort - firstPort + 1) / blockSize
	for _, i := range rand.Perm(blocks) {
		first := firstPort + i*blockSize
		claim, err := net.Listen("tcp", loopback(first))
		if err != nil {
			continue
		}
		ports.claims = append(ports.claims, claim)
		ports.next, ports.end = first+1, first+blockSize
		return nil
	}
	return fmt.Errorf("all blocks of ports between %d and %d are taken", firstPort, lastPort)
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

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
