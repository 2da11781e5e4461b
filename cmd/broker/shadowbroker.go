package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"broker/cmd/broker/process"
	"broker/core/engine"
	"broker/frontends"
	"broker/frontends/eventloop"
)

// shadowBroker is a broker in memory with one protocol on its own port.
type shadowBroker struct {
	protocol string
	dialer   net.Dialer

	mu     sync.Mutex // guards the fields below
	engine *engine.Engine
	server *eventloop.Server // nil: closed
	ended  bool
}

// shadowStopFor is the time in which the shadow's clients get their last replies.
const shadowStopFor = time.Second

func openShadowBroker(protocol string) (*shadowBroker, error) {
	s := &shadowBroker{protocol: protocol}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.open()
}

func (s *shadowBroker) open() error {
	e, err := engine.Open(engine.Options{Durability: engine.None})
	if err != nil {
		return err
	}
	s.engine = e
	front, err := process.NewFrontend(s.protocol, e, buildVersion())
	if err == nil {
		s.server, err = eventloop.Bind([]eventloop.Listener{{Name: s.protocol, Network: "tcp", Address: "127.0.0.1:0"}})
	}
	if err == nil {
		err = s.server.Serve(eventloop.Options{
			Broker: e, Frontends: map[string]frontends.Frontend{s.protocol: front}, Loops: 1, Log: zerolog.Nop(),
		})
	}
	if err != nil {
		s.stop()
	}
	return err
}

// errShadowClosed is returned after close.
var errShadowClosed = errors.New("the broker in memory is closed")

// dial connects to it.
func (s *shadowBroker) dial(ctx context.Context) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil, errShadowClosed
	}
	return s.dialer.DialContext(ctx, "tcp", s.server.Addrs()[0].String())
}

// renew replaces it by an empty one.
func (s *shadowBroker) renew() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errShadowClosed
	}
	s.stop()
	return s.open()
}

// close ends it. Its jobs are gone.
func (s *shadowBroker) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.stop()
}

func (s *shadowBroker) stop() {
	if s.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), shadowStopFor)
		defer cancel()
		s.server.Stop(ctx)
	}
	if s.engine != nil {
		_ = s.engine.Shutdown() // nothing is stored
	}
	s.server, s.engine = nil, nil
}
