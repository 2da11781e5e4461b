package qless

import (
	"github.com/tidwall/redcon"

	"broker/core"
)

// maxSubscriptions bounds the channels and patterns of one client.
const maxSubscriptions = 10_000

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
	channels, own := s.f.messages.subscriptions(s)
	total := len(channels) + len(own)
	if on && total+len(names) > maxSubscriptions {
		return refuse(b, "ERR too many subscriptions")
	}
	if !on && len(names) == 0 {
		if names = channels; patterns {
			names = own
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

// publish channel message
func publish(s *session, b []byte, args []string) ([]byte, core.Commit) {
	h := &s.f.messages
	h.mu.Lock()
	n := h.send(message{args[1], args[2]}, 0)
	h.mu.Unlock()
	return redcon.AppendInt(b, int64(n)), 0
}
