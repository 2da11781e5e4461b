package resp

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
)

// subscriberBytes limits the messages that wait for one subscriber. Further messages are dropped and counted.
const subscriberBytes = 1 << 20

// Limits of the channels and patterns of one client: their number, and the length of all names.
const (
	MaxSubscriptions     = 10_000
	MaxSubscriptionBytes = 1 << 20

	// MaxPattern is the length of a pattern, and of a channel that patterns are compared with.
	MaxPattern = 1 << 10
)

// Hub passes published messages to subscribers. A message waits for the commit of its command, as the reply does, and
// is queued before the reply. The zero value is ready to use.
type Hub struct {
	mu       sync.Mutex // guards the fields below and the waiting messages of subscribers
	channels map[string]map[*Subscriber]bool
	patterns patternIndex
	dropped  uint64
}

// Subscriber is a connection as the hub knows it.
type Subscriber struct {
	Wake   func()        // called when messages wait
	Holder access.Holder // of the patterns that it subscribes to; set before SubscribePatterns

	// MayHear reports whether the client may get messages of a channel now. A reload may have taken the right to
	// subscribe. It is called on the session's own loop.
	MayHear func(channel string) bool

	channels nameSet // used on the session's own loop
	patterns nameSet
	waiting  []Message
	bytes    int // size of the waiting messages
	some     atomic.Bool
}

// Message is an encoded message that waits to be written. Its commit must be durable first.
type Message struct {
	bytes   []byte
	commit  core.Commit
	channel string
}

// nameSet is a set of names that can be listed. Each operation takes constant time.
type nameSet struct {
	names []string
	place map[string]int
	bytes int
}

func (n *nameSet) add(name string) {
	if _, there := n.place[name]; there {
		return
	}
	if n.place == nil {
		n.place = map[string]int{}
	}
	n.place[name] = len(n.names)
	n.names = append(n.names, name)
	n.bytes += len(name)
}

func (n *nameSet) remove(name string) {
	at, there := n.place[name]
	if !there {
		return
	}
	last := len(n.names) - 1
	n.names[at] = n.names[last]
	n.place[n.names[at]] = at
	n.names[last] = ""
	n.names = n.names[:last]
	delete(n.place, name)
	n.bytes -= len(name)
}

// Publish queues a message for all subscribers of a channel and returns their number. The message waits for everything
// that a SharedClient, which then wakes the subscribers, has asked so far; nil: for nothing.
func (h *Hub) Publish(channel, payload string, after *SharedClient) (n int) {
	commit := core.Commit(0)
	if after != nil {
		commit = after.newest
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n = h.send(h.channels[channel], Message{commit: commit, channel: channel}, "message", channel, payload)
	if len(channel) > MaxPattern {
		return n
	}
	for _, p := range h.patterns.match(channel) {
		n += h.send(p.listeners, Message{commit: commit, channel: channel}, "pmessage", p.text, channel, payload)
	}
	return n
}

// send adds a message of some words, whose bytes are shared, to those that wait for subscribers. It returns their
// number. A message for which no subscriber has room is not encoded. The caller holds the lock.
func (h *Hub) send(listeners map[*Subscriber]bool, m Message, words ...string) int {
	size := 0
	for _, word := range words {
		size += len(word) + len("$0\r\n\r\n")
	}
	for s := range listeners {
		if s.bytes+size > subscriberBytes {
			h.dropped++
			continue
		}
		if m.bytes == nil {
			m.bytes = redcon.AppendArray(make([]byte, 0, size), len(words))
			for _, word := range words {
				m.bytes = redcon.AppendBulkString(m.bytes, word)
			}
		}
		s.bytes += len(m.bytes)
		s.waiting = append(s.waiting, m)
		s.some.Store(true)
		s.Wake()
	}
	return len(listeners)
}

// Take returns the messages that wait for a subscriber and that it may hear.
func (h *Hub) Take(s *Subscriber) []Message {
	if !s.some.Load() {
		return nil
	}
	h.mu.Lock()
	waiting := s.waiting
	s.waiting, s.bytes = nil, 0
	s.some.Store(false)
	h.mu.Unlock()
	return slices.DeleteFunc(waiting, func(m Message) bool { return !s.MayHear(m.channel) })
}

// Dropped is the number of messages that were dropped because subscribers were slow.
func (h *Hub) Dropped() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dropped
}

// Subscribe serves SUBSCRIBE and PSUBSCRIBE: it appends a reply for each name.
func (h *Hub) Subscribe(s *Subscriber, b []byte, names []string) []byte {
	return h.add(s, b, "subscribe", names)
}

// SubscribePatterns is Subscribe for patterns of names.
func (h *Hub) SubscribePatterns(s *Subscriber, b []byte, names []string) []byte {
	if slices.ContainsFunc(names, func(pattern string) bool { return len(pattern) > MaxPattern }) {
		return redcon.AppendError(b, "ERR a pattern has at most "+strconv.Itoa(MaxPattern)+" bytes")
	}
	return h.add(s, b, "psubscribe", names)
}

func (h *Hub) add(s *Subscriber, b []byte, word string, names []string) []byte {
	bytes := s.channels.bytes + s.patterns.bytes
	for _, name := range names {
		bytes += len(name)
	}
	if s.Count()+len(names) > MaxSubscriptions || bytes > MaxSubscriptionBytes {
		return redcon.AppendError(b, "ERR too many subscriptions")
	}
	if word[0] == 'p' {
		h.mu.Lock()
		err := h.patterns.take(s.Holder, names)
		h.mu.Unlock()
		if err != nil {
			return redcon.AppendError(b, noWildSteps+err.Error())
		}
	}
	return h.change(s, b, word, names, true)
}

// Unsubscribe serves UNSUBSCRIBE: it appends a reply for each name, or for each channel of the client if there are no
// names. Write the waiting messages first.
func (h *Hub) Unsubscribe(s *Subscriber, b []byte, names []string) []byte {
	return h.drop(s, b, "unsubscribe", names, &s.channels)
}

// UnsubscribePatterns is Unsubscribe for patterns of names.
func (h *Hub) UnsubscribePatterns(s *Subscriber, b []byte, names []string) []byte {
	return h.drop(s, b, "punsubscribe", names, &s.patterns)
}

func (h *Hub) drop(s *Subscriber, b []byte, word string, names []string, own *nameSet) []byte {
	if len(names) == 0 {
		names = slices.Clone(own.names)
	}
	if len(names) == 0 {
		b = redcon.AppendBulkString(redcon.AppendArray(b, 3), word)
		return redcon.AppendInt(redcon.AppendNull(b), int64(s.Count()))
	}
	return h.change(s, b, word, names, false)
}

// change adds or removes channels or patterns of a client and appends a reply for each.
func (h *Hub) change(s *Subscriber, b []byte, word string, names []string, on bool) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	own, set := &s.channels, h.setChannel
	if word[0] == 'p' {
		own, set = &s.patterns, h.patterns.set
	}
	for _, name := range names {
		if set(s, name, on); on {
			own.add(name)
		} else {
			own.remove(name)
		}
		b = redcon.AppendBulkString(redcon.AppendArray(b, 3), word)
		b = redcon.AppendInt(redcon.AppendBulkString(b, name), int64(s.Count()))
	}
	return b
}

// setChannel adds a client to those of a channel, or removes it.
func (h *Hub) setChannel(s *Subscriber, name string, on bool) {
	listeners := h.channels[name]
	switch {
	case !on:
		if delete(listeners, s); len(listeners) == 0 {
			delete(h.channels, name)
		}
		return
	case h.channels == nil:
		h.channels = map[string]map[*Subscriber]bool{}
		fallthrough
	case listeners == nil:
		listeners = map[*Subscriber]bool{}
		h.channels[name] = listeners
	}
	listeners[s] = true
}

// Count is the number of subscriptions of a client. It is used on the session's own loop.
func (s *Subscriber) Count() int { return len(s.channels.names) + len(s.patterns.names) }

// Leave ends all subscriptions of a client.
func (h *Hub) Leave(s *Subscriber) {
	if s.Count() == 0 {
		return
	}
	h.change(s, nil, "unsubscribe", slices.Clone(s.channels.names), false)
	h.change(s, nil, "punsubscribe", slices.Clone(s.patterns.names), false)
}
