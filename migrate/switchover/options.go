package switchover

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"
)

// Options of a switch.
type Options struct {
	Protocol string
	Server   string                          // HOST:PORT, for the report
	Broker   string                          // HOST:PORT
	Password string                          // password of the broker; Faktory only
	Patience time.Duration                   // in which the broker must reply; zero: 10 s
	Changed  func(queues []string, to State) // called after each change
}

// Switch connects clients to a server and to the broker.
type Switch struct {
	*board

	opts   Options
	broker *broker
	p      protocol

	replyWithin time.Duration
	greetWithin time.Duration // for a new connection
}

// writeWithin limits the time in which the broker must read a request.
func (s *Switch) writeWithin() time.Duration { return max(replyWithin, s.replyWithin) }

// protocol serves the clients of a protocol.
type protocol interface {
	// join serves a client until it or the server ends.
	join(client, server net.Conn)
	// check reports whether the broker serves clients.
	check() error
}

// makers create the protocols.
var makers = map[string]func(*Switch) protocol{
	"gearman":   func(s *Switch) protocol { return gearman{s} },
	"faktory":   newFaktory,
	"beanstalk": func(s *Switch) protocol { return beanstalk{s} },
}

// Protocols are the names of the protocols that can be switched.
func Protocols() []string { return slices.Sorted(maps.Keys(makers)) }

// CheckProtocol is an error for any other name.
func CheckProtocol(name string) error {
	if makers[name] == nil {
		return fmt.Errorf("queues of %s cannot be cut over while clients work, only those of %s", name,
			strings.Join(Protocols(), ", "))
	}
	return nil
}

// NewSwitch makes a Switch with all queues at the server.
func NewSwitch(o Options) (*Switch, error) {
	if err := CheckProtocol(o.Protocol); err != nil {
		return nil, err
	}
	s := &Switch{board: newBoard(), opts: o, replyWithin: cmp.Or(o.Patience, replyWithin)}
	s.greetWithin = max(dialWithin, s.replyWithin/5)
	s.broker = &broker{address: o.Broker, within: s.greetWithin}
	s.p = makers[o.Protocol](s)
	return s, nil
}

// Join serves a client until it or the server ends. It is wiretap.Proxy.Join.
func (s *Switch) Join(client, server net.Conn) { s.p.join(client, server) }

// CutOver sends the new jobs of queues to the broker, if it serves clients.
func (s *Switch) CutOver(queues ...string) error {
	if err := s.p.check(); err != nil {
		return err
	}
	err := s.set(New, queues)
	if err == nil {
		s.opts.Changed(queues, New)
	}
	return err
}

// RollBack sends the new jobs of queues to the server again.
func (s *Switch) RollBack(queues ...string) error {
	err := s.set(Returned, queues)
	if err == nil {
		s.opts.Changed(queues, Returned)
	}
	return err
}
