package qless

import (
	"sync"

	"github.com/tidwall/redcon"

	"broker/core"
)

// hub passes messages to subscribers. A message waits for the commit of its command like the reply does, and is queued
// before the reply.
type hub struct {
	mu       sync.Mutex // guards what follows, and the subscriber part of sessions
	channels map[string]map[*session]bool
	patterns map[string]map[*session]bool
	dropped  uint64
}

// subscriber is the part of a session that the hub knows.
type subscriber struct {
	channels []string
	patterns []string
	waiting  []delivery
	bytes    int
}

// delivery is a message that waits to be written.
type delivery struct {
	bytes  []byte
	commit core.Commit
}

// publish queues the messages of a command.
func (h *hub) publish(messages []message, commit core.Commit) {
	if len(messages) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range messages {
		h.send(m, commit)
	}
}

// send queues one message and returns the number of subscribers. The caller holds the lock.
func (h *hub) send(m message, commit core.Commit) (n int) {
	for s := range h.channels[m.channel] {
		n++
		b := redcon.AppendBulkString(redcon.AppendArray(nil, 3), "message")
		h.queue(s, redcon.AppendBulkString(redcon.AppendBulkString(b, m.channel), m.payload), commit)
	}
	for _, pattern := range sortedKeys(h.patterns) {
		if !matches(pattern, m.channel) {
			continue
		}
		for s := range h.patterns[pattern] {
			n++
			b := redcon.AppendBulkString(redcon.AppendArray(nil, 4), "pmessage")
			b = redcon.AppendBulkString(redcon.AppendBulkString(b, pattern), m.channel)
			h.queue(s, redcon.AppendBulkString(b, m.payload), commit)
		}
	}
	return n
}

func (h *hub) queue(s *session, b []byte, commit core.Commit) {
	if s.subscriber.bytes+len(b) > subscriberBytes {
		h.dropped++
		return
	}
	s.subscriber.bytes += len(b)
	s.subscriber.waiting = append(s.subscriber.waiting, delivery{b, commit})
	s.conn.Wake()
}

// take returns what waits for a session.
func (h *hub) take(s *session) []delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	waiting := s.subscriber.waiting
	s.subscriber.waiting, s.subscriber.bytes = nil, 0
	return waiting
}

// droppedMessages is how many messages slow subscribers have lost.
func (h *hub) droppedMessages() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dropped
}

// subscribe adds or removes channels or patterns of a session, and returns the number of subscriptions after each.
func (h *hub) subscribe(s *session, patterns, on bool, names []string) []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.channels == nil {
		h.channels, h.patterns = map[string]map[*session]bool{}, map[string]map[*session]bool{}
	}
	index, own := h.channels, &s.subscriber.channels
	if patterns {
		index, own = h.patterns, &s.subscriber.patterns
	}
	counts := make([]int, len(names))
	for i, name := range names {
		if on {
			if index[name] == nil {
				index[name] = map[*session]bool{}
			}
			index[name][s] = true
			*own = with(*own, name)
		} else {
			if delete(index[name], s); len(index[name]) == 0 {
				delete(index, name)
			}
			*own = without(*own, name)
		}
		counts[i] = len(s.subscriber.channels) + len(s.subscriber.patterns)
	}
	return counts
}

// subscriptions are the channels and patterns of a session.
func (h *hub) subscriptions(s *session) (channels, patterns []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return s.subscriber.channels, s.subscriber.patterns
}

// leave ends all subscriptions of a session.
func (h *hub) leave(s *session) {
	channels, patterns := h.subscriptions(s)
	h.subscribe(s, false, false, channels)
	h.subscribe(s, true, false, patterns)
}
