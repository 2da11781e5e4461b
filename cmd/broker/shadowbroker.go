package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"broker/access"
	"broker/core"
	"broker/core/engine"
	"broker/frontends"
	"broker/frontends/beanstalk"
	"broker/frontends/eventloop"
	"broker/frontends/faktory"
	"broker/frontends/gearman"
	"broker/frontends/qless"
	"broker/frontends/workq"
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

// shadowFrontends create the front-end of a protocol, by the name in recordings.
var shadowFrontends = map[string]func(core.Broker) (frontends.Frontend, error){
	"gearman": func(b core.Broker) (frontends.Frontend, error) {
		return gearman.New(access.Unrestricted(b, core.Gearman),
			gearman.Options{Handles: core.NewHandleFormat("H:shadow")}), nil
	},
	"faktory": func(b core.Broker) (frontends.Frontend, error) {
		return faktory.New(access.Unrestricted(b, core.Faktory), faktory.Options{}), nil
	},
	"workq": func(b core.Broker) (frontends.Frontend, error) {
		return workq.New(access.Unrestricted(b, core.Workq),
			workq.Options{Handles: core.NewHandleFormat("H:shadow")}), nil
	},
	"beanstalk": func(b core.Broker) (frontends.Frontend, error) {
		return beanstalk.New(access.Unrestricted(b, core.Beanstalk), beanstalk.Options{Version: buildVersion()}), nil
	},
	"qless": func(b core.Broker) (frontends.Frontend, error) {
		q := qless.New(access.Unrestricted(b, core.Qless), qless.Options{AllowFlush: true})
		return q, q.Start()
	},
}

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
	front, err := shadowFrontends[s.protocol](e)
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
