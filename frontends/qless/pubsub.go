package qless

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidwall/redcon"

	"broker/core"
)

// hub passes messages to subscribers. A message waits for the commit of its command like the reply does, and is queued
// before the reply.
type hub struct {
	mu       sync.Mutex // guards what follows, and what waits for sessions
	channels map[string]map[*session]bool
	patterns map[string]map[*session]bool
	inOrder  []string // the patterns, in byte order
	dropped  uint64
}

// subscriber is the part of a session that the hub knows.
type subscriber struct {
	channels nameSet // used on the session's own loop
	patterns nameSet
	waiting  []delivery
	bytes    int // of them
	some     atomic.Bool
}

// nameSet is a set of names that can be listed. All operations take the same time, however many names there are.
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
	for _, pattern := range h.inOrder {
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
	s.subscriber.some.Store(true)
	s.conn.Wake()
}

// take returns what waits for a session.
func (h *hub) take(s *session) []delivery {
	if !s.subscriber.some.Load() {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	waiting := s.subscriber.waiting
	s.subscriber.waiting, s.subscriber.bytes = nil, 0
	s.subscriber.some.Store(false)
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
				if patterns {
					h.order(name, true)
				}
			}
			index[name][s] = true
			own.add(name)
		} else {
			if listeners := index[name]; listeners != nil {
				if delete(listeners, s); len(listeners) == 0 {
					delete(index, name)
					if patterns {
						h.order(name, false)
					}
				}
			}
			own.remove(name)
		}
		counts[i] = s.subscriber.count()
	}
	return counts
}

// order adds a pattern to the ordered ones, or removes it.
func (h *hub) order(pattern string, add bool) {
	at, _ := slices.BinarySearch(h.inOrder, pattern)
	if add {
		h.inOrder = slices.Insert(h.inOrder, at, pattern)
	} else {
		h.inOrder = slices.Delete(h.inOrder, at, at+1)
	}
}

// count is the number of subscriptions, bytesOfNames the length of their names.
func (s *subscriber) count() int { return len(s.channels.names) + len(s.patterns.names) }

func (s *subscriber) bytesOfNames() int { return s.channels.bytes + s.patterns.bytes }

// leave ends all subscriptions of a session.
func (h *hub) leave(s *session) {
	h.subscribe(s, false, false, slices.Clone(s.subscriber.channels.names))
	h.subscribe(s, true, false, slices.Clone(s.subscriber.patterns.names))
}
