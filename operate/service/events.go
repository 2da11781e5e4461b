package service

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends/shared/tracecontext"
)

// Event is an event of a job, a queue or a worker.
type Event struct {
	ID       string     `json:"id" doc:"id of the event, for Last-Event-ID"`
	At       *time.Time `json:"at"`
	Kind     string     `json:"kind" example:"done"`
	Queue    string     `json:"queue,omitempty"`
	Type     string     `json:"type,omitempty"`
	Job      string     `json:"job,omitempty" doc:"the job's id; seq:N if the id is not available"`
	Seq      uint64     `json:"seq,omitempty"`
	Protocol string     `json:"protocol,omitempty" doc:"of the client that caused it"`
	Worker   string     `json:"worker,omitempty"`
	Detail   string     `json:"detail,omitempty"`
	TraceID  string     `json:"trace_id,omitempty" doc:"of the trace that the job is part of"`
	Over     bool       `json:"over,omitempty" doc:"this is the job's last event"`
}

// EventFilter selects events. All conditions that are set must hold.
type EventFilter struct {
	Kinds       []string
	Queues      []string // in one of these
	QueuePrefix string
	Types       []string
	Job         string // name of a job
}

// EventKinds lists the names of the kinds of events.
var EventKinds = func() (names []string) {
	for _, k := range core.EventKinds {
		names = append(names, eventKindName(k))
	}
	return names
}()

// eventKindName is the name of a kind for clients.
func eventKindName(k core.EventKind) string { return strings.ReplaceAll(k.String(), " ", "_") }

// EventBatch is a batch of events for a listener.
type EventBatch struct {
	Events []*StoredEvent

	// Dropped is the number of events that were lost before these because the listener was too slow. Some of them may
	// not have matched the filter.
	Dropped uint64

	// Restarted means that the broker no longer has the events after the listener's last event.
	Restarted bool
}

// StoredEvent is an event shared by several listeners.
type StoredEvent struct {
	id   string
	core *core.Event

	once sync.Once // guards the fields below
	view Event
	json []byte
}

// Event is the event in the form for clients.
func (e *StoredEvent) Event() *Event {
	e.once.Do(e.make)
	return &e.view
}

// JSON is the event in JSON; read-only.
func (e *StoredEvent) JSON() []byte {
	e.once.Do(e.make)
	return e.json
}

func (e *StoredEvent) make() {
	e.view = eventView(e.core)
	e.view.ID = e.id
	e.json = toJSON(&e.view)
}

// eventView is an event in the form for clients, without the id.
func eventView(ev *core.Event) Event {
	v := Event{
		At: timeOf(ev.At), Kind: eventKindName(ev.Kind), Queue: text(ev.Queue), Type: text(ev.Type), Seq: ev.Seq,
		Worker: text(ev.Worker), Detail: text(ev.Detail), TraceID: tracecontext.TraceID(ev.Trace), Over: ev.Over,
	}
	if ev.Protocol != core.Internal {
		v.Protocol = ev.Protocol.String()
	}
	if ev.Seq != 0 {
		v.Job = text(ev.ID)
		if ev.ID == "" {
			v.Job = seqName(ev.Seq)
		}
	}
	return v
}

// Limits of listeners.
const (
	maxListeners = 300

	// A listener receives at most this many events in one batch, and pauses between two batches. With many listeners
	// the batches are smaller, so that all listeners together receive at most eventBudget events in that time.
	eventPause    = 100 * time.Millisecond
	eventBudget   = 5000
	maxEventBatch = 2000
	minEventBatch = 10
)

// EventListener receives events. One goroutine uses it.
type EventListener struct {
	hub    *eventHub
	caller Caller
	holder access.Holder // of its place
	filter core.Subscribe
	kinds  uint32 // bits
	hashes []uint32
	next   uint64    // number of the next event
	quiet  time.Time // no batch before
	reset  bool      // EventBatch.Restarted is due
}

// Events starts to listen. If after is the id of an event, it begins with the events after that one, as far as the
// broker still has them. The caller must close the listener.
func (s *Service) Events(caller Caller, f EventFilter, after string) (*EventListener, error) {
	l := &EventListener{hub: &s.events, caller: caller, holder: caller.Holder()}
	if err := s.setEventFilter(l, &f); err != nil {
		return nil, err
	}
	if err := s.events.join(s, l, after); err != nil {
		return nil, err
	}
	return l, nil
}

// setEventFilter checks a filter and the caller's right to its events.
func (s *Service) setEventFilter(l *EventListener, f *EventFilter) error {
	l.filter = core.Subscribe{Queues: f.Queues, QueuePrefix: f.QueuePrefix, Types: f.Types}
	if err := l.caller.maySome(access.Read); err != nil {
		return err
	}
	for _, name := range f.Kinds {
		i := slices.Index(EventKinds, name)
		if i < 0 {
			return invalid("kind", "%q is not one of %s", name, strings.Join(EventKinds, ", "))
		}
		l.kinds |= 1 << core.EventKinds[i]
	}
	if l.kinds == 0 {
		l.kinds = ^uint32(0)
	}
	for _, queue := range f.Queues {
		if err := l.caller.may(access.Read, queue); err != nil {
			return err
		}
		l.hashes = append(l.hashes, queueHash(queue))
	}
	if f.Job == "" {
		return nil
	}
	c := s.open(l.caller)
	defer c.Close()
	info, err := s.inspect(context.Background(), c, access.Read, f.Job, true)
	if IsCode(err, CodeInvalid) {
		return invalid("job", "%v", err)
	}
	if err != nil {
		return err
	}
	l.filter.Job = info.Seq
	return nil
}

// Position is the id after which the listener continues.
func (l *EventListener) Position() string { return l.hub.position(l) }

// Close ends the listener.
func (l *EventListener) Close() { l.hub.leave(l) }

// Next waits for at least one event and returns the available events. When ctx or the service ends, or the credentials
// of the client are no longer valid, it returns an error.
func (l *EventListener) Next(ctx context.Context) (EventBatch, error) {
	if l.caller.Access.Revoked(l.caller.Principal) {
		return EventBatch{}, &Error{Code: CodeForbidden, Detail: "the credentials of this stream are no longer valid"}
	}
	if err := l.pause(ctx); err != nil {
		return EventBatch{}, err
	}
	for {
		b, news := l.hub.read(l)
		if l.reset {
			b.Restarted, l.reset = true, false
		}
		if len(b.Events) > 0 || b.Dropped > 0 || b.Restarted {
			l.quiet = monotonicNow().Add(eventPause)
			return b, nil
		}
		select {
		case <-news:
		case <-l.hub.ctx.Done():
			return b, &Error{Code: CodeShutdown, Detail: core.ErrShutdown.Error()}
		case <-ctx.Done():
			return b, context.Cause(ctx)
		}
	}
}

// pause lets time pass between two batches.
func (l *EventListener) pause(ctx context.Context) error {
	wait := l.quiet.Sub(monotonicNow())
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wants reports whether an event passes the filter.
func (l *EventListener) wants(ev *core.Event, readsAll bool) bool {
	f := &l.filter
	return (f.Job == 0 || f.Job == ev.Seq) && (len(f.Queues) == 0 || slices.Contains(f.Queues, ev.Queue)) &&
		strings.HasPrefix(ev.Queue, f.QueuePrefix) &&
		(len(f.Types) == 0 || ev.Seq != 0 && slices.Contains(f.Types, ev.Type)) &&
		(readsAll || ev.Queue != "" && l.caller.may(access.Read, ev.Queue) == nil)
}

var queueSeed = maphash.MakeSeed()

// queueHash is a hash of a queue name. Different queues may have the same hash.
func queueHash(name string) uint32 { return uint32(maphash.String(queueSeed, name)) }

// monotonicNow is the time for the pauses of listeners.
func monotonicNow() time.Time {
	return time.Now() //nolint:forbidigo // a pause of a listener is not the broker's time
}
