package main

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"broker/access"
	"broker/cmd/broker/process"
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
	engine *engine.Engine
	server *eventloop.Server
	dialer net.Dialer
	once   sync.Once
}

// shadowStopFor is the time in which the shadow's clients get their last replies.
const shadowStopFor = time.Second

// shadowFrontends create the front-end of a protocol, by the name in recordings.
var shadowFrontends = map[string]func(core.Broker) (frontends.Frontend, error){
	"gearman": func(b core.Broker) (frontends.Frontend, error) {
		return gearman.New(access.Unrestricted(b, core.Gearman),
			gearman.Options{Handles: core.NewHandleFormat("H:shadow"), NoJobDelay: process.GearmanNoJobDelay}), nil
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
	e, err := engine.Open(engine.Options{Durability: engine.None})
	if err != nil {
		return nil, err
	}
	s := &shadowBroker{engine: e}
	front, err := shadowFrontends[protocol](e)
	if err == nil {
		s.server, err = eventloop.Bind([]eventloop.Listener{{Name: protocol, Network: "tcp", Address: "127.0.0.1:0"}})
	}
	if err == nil {
		err = s.server.Serve(eventloop.Options{
			Broker: e, Frontends: map[string]frontends.Frontend{protocol: front}, Loops: 1, Log: zerolog.Nop(),
		})
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// dial connects to it.
func (s *shadowBroker) dial(ctx context.Context) (net.Conn, error) {
	return s.dialer.DialContext(ctx, "tcp", s.server.Addrs()[0].String())
}

// close ends it. Its jobs are gone.
func (s *shadowBroker) close() {
	s.once.Do(func() {
		if s.server != nil {
			ctx, cancel := context.WithTimeout(context.Background(), shadowStopFor)
			defer cancel()
			s.server.Stop(ctx)
		}
		_ = s.engine.Shutdown() // nothing is stored
	})
}
