package resp

import (
	"slices"
	"sync"

	"github.com/tidwall/redcon"

	"broker/core"
)

// SubscriberBytes is how much may wait for one subscriber; further messages are dropped and counted.
const SubscriberBytes = 1 << 20

// Limits of the subscriptions of one client.
const (
	MaxSubscriptions     = 10_000
	maxSubscriptionBytes = 1 << 20
)

// Hub passes published messages to subscribers. The zero value is ready.
type Hub struct {
	mu       sync.Mutex // guards what follows, and the subscribers' fields
	channels map[string]map[*Subscriber]struct{}
	dropped  uint64
}

// Subscriber is a connection as the hub knows it.
type Subscriber struct {
	Wake func() // called when messages wait

	channels map[string]struct{}
	bytes    int // of the names of its channels
	waiting  []Message
	pending  int // bytes that wait
}

// Message is encoded and waits to be written. Commit must be durable before.
type Message struct {
	Bytes  []byte
	Commit core.Commit
}

// Publish queues a message and returns the number of its subscribers.
func (h *Hub) Publish(channel, payload string, commit core.Commit) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	to := h.channels[channel]
	if len(to) == 0 {
		return 0
	}
	b := redcon.AppendBulkString(redcon.AppendArray(nil, 3), "message")
	b = redcon.AppendBulkString(redcon.AppendBulkString(b, channel), payload)
	for s := range to {
		if s.pending+len(b) > SubscriberBytes {
			h.dropped++
			continue
		}
		s.pending += len(b)
		s.waiting = append(s.waiting, Message{b, commit})
		s.Wake()
	}
	return len(to)
}

// Take returns the messages that wait for a subscriber.
func (h *Hub) Take(s *Subscriber) []Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	waiting := s.waiting
	s.waiting, s.pending = nil, 0
	return waiting
}

// Dropped is how many messages slow subscribers have lost.
func (h *Hub) Dropped() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dropped
}

// Subscribed reports whether a client listens to any channel. It is called by the client's own session, which is the one that
// changes its subscriptions.
func (s *Subscriber) Subscribed() bool { return len(s.channels) > 0 }

// Subscribe adds channels and appends the reply, one part for each.
func (h *Hub) Subscribe(s *Subscriber, b []byte, names []string) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	bytes := s.bytes
	for _, name := range names {
		bytes += len(name)
	}
	if len(s.channels)+len(names) > MaxSubscriptions || bytes > maxSubscriptionBytes {
		return redcon.AppendError(b, "ERR too many subscriptions")
	}
	if h.channels == nil {
		h.channels = make(map[string]map[*Subscriber]struct{})
	}
	if s.channels == nil {
		s.channels = make(map[string]struct{})
	}
	for _, name := range names {
		if h.channels[name] == nil {
			h.channels[name] = make(map[*Subscriber]struct{})
		}
		if _, already := s.channels[name]; !already {
			s.bytes += len(name)
		}
		h.channels[name][s] = struct{}{}
		s.channels[name] = struct{}{}
		b = appendSubscription(b, "subscribe", name, len(s.channels))
	}
	return b
}

// Unsubscribe removes channels, or all if none is named, and appends the reply, one part for each.
func (h *Hub) Unsubscribe(s *Subscriber, b []byte, names []string) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(names) == 0 {
		for name := range s.channels {
			names = append(names, name)
		}
		slices.Sort(names)
	}
	if len(names) == 0 {
		b = redcon.AppendBulkString(redcon.AppendArray(b, 3), "unsubscribe")
		return redcon.AppendInt(redcon.AppendNull(b), 0)
	}
	for _, name := range names {
		h.remove(s, name)
		b = appendSubscription(b, "unsubscribe", name, len(s.channels))
	}
	return b
}

func appendSubscription(b []byte, word, name string, n int) []byte {
	b = redcon.AppendBulkString(redcon.AppendArray(b, 3), word)
	return redcon.AppendInt(redcon.AppendBulkString(b, name), int64(n))
}

// remove ends one subscription. The caller holds the lock.
func (h *Hub) remove(s *Subscriber, name string) {
	if _, subscribed := s.channels[name]; !subscribed {
		return
	}
	s.bytes -= len(name)
	delete(s.channels, name)
	delete(h.channels[name], s)
	if len(h.channels[name]) == 0 {
		delete(h.channels, name)
	}
}

// Leave ends all subscriptions of a client that is gone.
func (h *Hub) Leave(s *Subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range s.channels {
		h.remove(s, name)
	}
}
