package service

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/client"
)

// eventHub is the one subscription of all listeners. It keeps the latest events in a ring that every listener reads at
// its own pace, so that neither the number of listeners nor a slow one costs the core anything. It subscribes with the
// first listener, and stays subscribed for a while after the last one has left, for listeners that return.
type eventHub struct {
	ctx    context.Context // ends with the service
	places *access.Pool    // of listeners

	mu        sync.RWMutex // guards the fields below
	listeners int
	running   bool
	run       string // part of the ids of events, which are only valid in this run
	ring      []*StoredEvent
	heads     []eventHead   // heads of the events in the ring, enough for most filters
	next      uint64        // number of the next event, from 1
	news      chan struct{} // closed with the next event
	left      chan struct{} // signals that the last listener has left
}

// eventHead is the part of an event that filters check first. Kind is zero for a lost event.
type eventHead struct {
	queue uint32 // hash
	kind  core.EventKind
}

const (
	eventRing   = 1 << 14
	eventBuffer = 50_000                // events in the core between two fetches
	eventLook   = 10 * time.Millisecond // time between two fetches from the core
	eventLinger = 30 * time.Second      // after the last listener has left
)

// join adds a listener, and starts the hub if it is not running.
func (h *eventHub) join(s *Service, l *EventListener, after string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.places.Take(l.holder, 1); err != nil {
		return &Error{Code: CodeTooMany, Detail: "too many clients listen to events: " + err.Error()}
	}
	if !h.running {
		if err := h.start(s); err != nil {
			h.places.Return(l.holder, 1)
			return err
		}
	}
	h.listeners++
	l.next = h.next
	if after != "" {
		run, digits, _ := strings.Cut(after, "-")
		number, err := strconv.ParseUint(digits, 10, 64)
		if l.reset = run != h.run || err != nil || number >= h.next; !l.reset {
			l.next = number + 1
		}
	}
	return nil
}

// position is the id of the last event before the next one of a listener. At the beginning of a run it belongs to no
// event.
func (h *eventHub) position(l *EventListener) string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return eventID(h.run, l.next-1)
}

// eventID is the id of an event: the run of the hub and the number of the event.
func eventID(run string, number uint64) string { return run + "-" + strconv.FormatUint(number, 10) }

func (h *eventHub) leave(l *EventListener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.places.Return(l.holder, 1)
	if h.listeners--; h.listeners == 0 {
		select {
		case h.left <- struct{}{}:
		default:
		}
	}
}

// start subscribes to all events.
func (h *eventHub) start(s *Service) error {
	c := s.openUnlisted()
	if _, err := c.ask(&core.Subscribe{Buffer: eventBuffer}); err != nil {
		c.Close()
		return err
	}
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	h.run, h.running, h.next = hex.EncodeToString(id[:]), true, 1
	h.ring, h.heads = make([]*StoredEvent, eventRing), make([]eventHead, eventRing)
	h.news, h.left = make(chan struct{}), make(chan struct{}, 1)
	s.running.Go(func() { // ends some time after the last listener has left; Close waits for it
		defer c.Close()
		h.follow(c)
	})
	return nil
}

// follow moves events from the core into the ring until there has been no listener for a while.
func (h *eventHub) follow(c *session) {
	var linger <-chan time.Time
	for {
		if !c.Replied() { // committed may have fetched replies and used up their wake-up
			select {
			case <-c.Woken():
				c.Do()
			case <-h.left:
				linger = time.After(eventLinger)
			case <-linger:
				if h.stopIfAlone() {
					return
				}
				linger = nil
			case <-h.ctx.Done():
				return
			}
			continue
		}
		events := c.Take()
		for commit := client.Latest(events); ; {
			err := c.Committed(h.ctx, commit)
			if err == nil {
				break
			}
			if !errors.Is(err, client.ErrCommitTimeout) {
				return // an event that is not durable may be lost
			}
		}
		h.publish(events)
		if !h.rest() {
			return
		}
	}
}

// rest waits a moment, so that events accumulate. It returns false when the service ends.
func (h *eventHub) rest() bool {
	timer := time.NewTimer(eventLook)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-h.ctx.Done():
		return false
	}
}

// stopIfAlone ends the run if there are no listeners.
func (h *eventHub) stopIfAlone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners > 0 {
		return false
	}
	h.running, h.ring, h.heads = false, nil, nil
	return true
}

// publish adds events to the ring.
func (h *eventHub) publish(replies []core.Reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range replies {
		r := &replies[i]
		if r.Kind != core.EventReply {
			continue
		}
		for lost := min(r.Event.Dropped, eventRing); lost > 0; lost-- {
			h.add(nil, eventHead{})
		}
		h.next += r.Event.Dropped - min(r.Event.Dropped, eventRing)
		h.add(&StoredEvent{id: eventID(h.run, h.next), core: &r.Event},
			eventHead{kind: r.Event.Kind, queue: queueHash(r.Event.Queue)})
	}
	close(h.news)
	h.news = make(chan struct{})
}

func (h *eventHub) add(e *StoredEvent, head eventHead) {
	h.ring[h.next%eventRing], h.heads[h.next%eventRing] = e, head
	h.next++
}

// read returns the next events of a listener from the ring, and a channel that signals new events.
func (h *eventHub) read(l *EventListener) (b EventBatch, news <-chan struct{}) {
	readsAll := l.caller.readsAll()
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.ring == nil { // the service has ended
		return b, nil
	}
	most := min(max(eventBudget/max(h.listeners, 1), minEventBatch), maxEventBatch)
	if h.next > eventRing && l.next < h.next-eventRing {
		b.Dropped = h.next - eventRing - l.next
		l.next += b.Dropped
	}
	for ; l.next < h.next && len(b.Events) < most; l.next++ {
		head := h.heads[l.next%eventRing]
		if head.kind == 0 {
			b.Dropped++
			continue
		}
		if l.kinds&(1<<head.kind) == 0 || l.hashes != nil && !slices.Contains(l.hashes, head.queue) {
			continue
		}
		if e := h.ring[l.next%eventRing]; l.wants(e.core, readsAll) {
			b.Events = append(b.Events, e)
		}
	}
	return b, h.news
}
