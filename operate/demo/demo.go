package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Addresses are the addresses of the broker for each protocol, as host:port.
type Addresses struct{ Workq, Gearman, Faktory, HTTP string }

// Shop is the running demo: all its clients.
type Shop struct {
	at  Addresses
	ctx context.Context
	end context.CancelFunc
	all sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	random *rand.Rand
	number int
}

// reconnectAfter is the pause of a client after it has lost its connection.
const reconnectAfter = time.Second

// Open fills the broker with jobs and starts the clients.
func Open(at Addresses) (*Shop, error) {
	s := &Shop{at: at, random: rand.New(rand.NewPCG(7, 11))}
	s.ctx, s.end = context.WithCancel(context.Background())
	if err := s.fill(); err != nil {
		s.end()
		return nil, fmt.Errorf("fill the demo's store: %w", err)
	}
	for _, client := range s.producers() {
		s.start(client)
	}
	for _, client := range s.workers() {
		s.start(client)
	}
	return s, nil
}

// Close ends the clients.
func (s *Shop) Close() {
	s.end()
	s.all.Wait()
}

// start runs a client until Close. It reconnects after any error, because a user of the demo may disconnect it.
func (s *Shop) start(client func() error) {
	s.all.Go(func() { // ends with s.ctx; Close waits for it
		for s.ctx.Err() == nil {
			_ = client()
			s.pause(reconnectAfter)
		}
	})
}

// pause waits; it returns at once when the demo ends.
func (s *Shop) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
}

// between returns a random time between two others.
func (s *Shop) between(low, high time.Duration) time.Duration {
	return low + time.Duration(s.chance()*float64(high-low))
}

// chance returns a random number from 0 to 1.
func (s *Shop) chance() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.Float64()
}

// next returns a number that is unique in this demo.
func (s *Shop) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	return s.number
}

// pick returns one of the values.
func (s *Shop) pick(of ...string) string { return of[int(s.chance()*float64(len(of)))] }
