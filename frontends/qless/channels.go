package qless

import (
	"slices"

	"github.com/tidwall/redcon"

	"broker/core"
)

// Limits of the channels and patterns of one client: their number, and the length of all names.
const (
	maxSubscriptions     = 10_000
	maxSubscriptionBytes = 1 << 20
)

func subscribe(s *session, b []byte, args []string) ([]byte, core.Commit) {
	return s.subscription(b, "subscribe", args[1:], false, true)
}

func psubscribe(s *session, b []byte, args []string) ([]byte, core.Commit) {
	return s.subscription(b, "psubscribe", args[1:], true, true)
}

func unsubscribe(s *session, b []byte, args []string) ([]byte, core.Commit) {
	return s.subscription(b, "unsubscribe", args[1:], false, false)
}

func punsubscribe(s *session, b []byte, args []string) ([]byte, core.Commit) {
	return s.subscription(b, "punsubscribe", args[1:], true, false)
}

// subscription changes what the client listens to; there is a reply for each name.
func (s *session) subscription(b []byte, word string, names []string, patterns, on bool) ([]byte, core.Commit) {
	total := s.subscriber.count()
	if on && (total+len(names) > maxSubscriptions || s.subscriber.bytesOfNames()+lengthOf(names) > maxSubscriptionBytes) {
		return refuse(b, "ERR too many subscriptions")
	}
	if !on && len(names) == 0 {
		names = slices.Clone(s.subscriber.channels.names)
		if patterns {
			names = slices.Clone(s.subscriber.patterns.names)
		}
		if len(names) == 0 {
			b = redcon.AppendBulkString(redcon.AppendArray(b, 3), word)
			return redcon.AppendInt(redcon.AppendNull(b), int64(total)), 0
		}
	}
	s.deliverMessages() // those of channels that are left now
	for i, n := range s.f.messages.subscribe(s, patterns, on, names) {
		b = redcon.AppendBulkString(redcon.AppendArray(b, 3), word)
		b = redcon.AppendInt(redcon.AppendBulkString(b, names[i]), int64(n))
	}
	return b, 0
}

func lengthOf(names []string) (n int) {
	for _, name := range names {
		n += len(name)
	}
	return n
}

// publish channel message
func publish(s *session, b []byte, args []string) ([]byte, core.Commit) {
	h := &s.f.messages
	h.mu.Lock()
	n := h.send(message{args[1], args[2]}, 0)
	h.mu.Unlock()
	return redcon.AppendInt(b, int64(n)), 0
}
