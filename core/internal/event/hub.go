package event

import (
	"slices"
	"strings"

	"broker/core"
)

// Values of core.Subscribe.Buffer.
const (
	defaultBuffer = 1000
	maxBuffer     = 100_000
)

// subscription is a client's filter of events.
type subscription struct {
	op      core.Subscribe
	kinds   uint32 // bits
	client  uint32 // slot
	waiting int    // events that the client has not fetched
	dropped uint64 // since the last delivered one
}

// Hub holds the subscriptions of all clients, by their slots. Not safe for concurrent use.
type Hub struct {
	subscriptions []*subscription
	kinds         uint32 // of events with subscriptions
	events        uint64 // events with subscriptions so far
}

// Bit is the bit of a kind in a set of kinds.
func Bit(k core.EventKind) uint32 { return 1 << k }

// Wanted reports whether there are subscriptions for events of a kind. Without any, an event costs this comparison.
func (x *Hub) Wanted(k core.EventKind) bool { return x.kinds&Bit(k) != 0 }

// Subscribe adds a subscription of a client; false: it names an unknown kind.
func (x *Hub) Subscribe(client uint32, op *core.Subscribe) bool {
	s := &subscription{op: *op, client: client}
	for _, k := range op.Kinds {
		if !slices.Contains(core.EventKinds[:], k) {
			return false
		}
		s.kinds |= Bit(k)
	}
	if len(op.Kinds) == 0 {
		s.kinds = ^uint32(0)
	}
	if s.op.Buffer <= 0 {
		s.op.Buffer = defaultBuffer
	}
	s.op.Buffer = min(s.op.Buffer, maxBuffer)
	s.op.Queues, s.op.Types = slices.Clone(op.Queues), slices.Clone(op.Types) // the caller may reuse them
	x.subscriptions = append(x.subscriptions, s)
	x.kinds |= s.kinds
	return true
}

// Leave ends all subscriptions of a client.
func (x *Hub) Leave(client uint32) {
	x.kinds = 0
	x.subscriptions = slices.DeleteFunc(x.subscriptions, func(s *subscription) bool {
		if s.client == client {
			return true
		}
		x.kinds |= s.kinds
		return false
	})
}

// Fetched records that a client has fetched its events.
func (x *Hub) Fetched(client uint32) {
	for _, s := range x.subscriptions {
		if s.client == client {
			s.waiting = 0
		}
	}
}

// Publish numbers an event, and calls deliver for each subscription that wants it and has room for it.
func (x *Hub) Publish(ev *core.Event, deliver func(client uint32, tag uint64, ev core.Event)) {
	x.events++
	ev.Number = x.events
	for _, s := range x.subscriptions {
		if !s.wants(ev) {
			continue
		}
		if s.waiting == s.op.Buffer {
			s.dropped++
			continue
		}
		copied := *ev
		copied.Dropped, s.dropped = s.dropped, 0
		s.waiting++
		deliver(s.client, s.op.Tag, copied)
	}
}

func (s *subscription) wants(ev *core.Event) bool {
	op := &s.op
	return s.kinds&Bit(ev.Kind) != 0 && (op.Job == 0 || op.Job == ev.Seq) &&
		(len(op.Queues) == 0 || slices.Contains(op.Queues, ev.Queue)) && strings.HasPrefix(ev.Queue, op.QueuePrefix) &&
		(len(op.Types) == 0 || ev.Seq != 0 && slices.Contains(op.Types, ev.Type)) && (!op.Traced || ev.Trace != "")
}
