package switchover

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// State is the side to which new jobs of a queue go.
type State string

// The states. A queue that was never cut over is Old and is not on the board.
const (
	Old      State = "old"
	New      State = "new"      // to the broker
	Returned State = "returned" // to the server again; the broker may still have jobs
)

// Queue is a queue that is or was cut over.
type Queue struct {
	Name     string    `json:"name"`
	State    State     `json:"state"`
	Since    time.Time `json:"since"`
	ToBroker uint64    `json:"to_broker"` // jobs that the broker has accepted
	ToServer uint64    `json:"to_server"` // jobs that the server has accepted since the first cut-over
}

// entry is a queue on the board. It never changes, apart from its counts.
type entry struct {
	state              State
	since              time.Time
	toBroker, toServer *atomic.Uint64
}

// accepted counts a submission. The entry may be nil.
func (e *entry) accepted(byBroker bool) {
	switch {
	case e == nil:
	case byBroker:
		e.toBroker.Add(1)
	default:
		e.toServer.Add(1)
	}
}

// maxQueues limits the queues on the board, and maxName the length of their names.
const (
	maxQueues = 10_000
	maxName   = 1024
)

// board has the states of all queues.
type board struct {
	queues atomic.Pointer[map[string]*entry] // replaced as a whole

	mu      sync.Mutex // guards changes of queues and the fields below
	changed map[int]func()
	next    int
}

// newBoard makes a board on which all queues are old.
func newBoard() *board {
	b := &board{changed: make(map[int]func())}
	b.queues.Store(&map[string]*entry{})
	return b
}

// find returns the queue's entry; nil if it was never cut over.
func (b *board) find(queue string) *entry { return (*b.queues.Load())[queue] }

// both reports whether the jobs of a queue may be on either side.
func (b *board) both(queue string) bool { return b.find(queue) != nil }

// any reports whether jobs of some queue may be at the broker.
func (b *board) any() bool { return len(*b.queues.Load()) > 0 }

// set changes the states of all the given queues or of none.
func (b *board) set(to State, names []string) error {
	calls, err := b.replace(to, names)
	for _, call := range calls {
		call()
	}
	return err
}

// replace is set without the calls of the subscribed functions, which it returns.
func (b *board) replace(to State, names []string) ([]func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	queues := maps.Clone(*b.queues.Load())
	for _, name := range names {
		old := queues[name]
		switch {
		case name == "" || len(name) > maxName || strings.ContainsAny(name, "\x00\r\n"):
			return nil, fmt.Errorf("%q is not the name of a queue", name[:min(len(name), maxName)])
		case old == nil && to == Returned:
			return nil, fmt.Errorf("queue %s was never cut over", name)
		case old == nil:
			queues[name] = &entry{to, time.Now(), new(atomic.Uint64), new(atomic.Uint64)}
		case old.state != to:
			queues[name] = &entry{to, time.Now(), old.toBroker, old.toServer}
		}
	}
	switch {
	case len(names) == 0:
		return nil, errors.New("no queue is named")
	case len(queues) > maxQueues:
		return nil, fmt.Errorf("more than %d queues", maxQueues)
	}
	b.queues.Store(&queues)
	return slices.Collect(maps.Values(b.changed)), nil
}

// subscribe registers a function to be called after each change. It must not block.
func (b *board) subscribe(f func()) (cancel func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	n := b.next
	b.changed[n] = f
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.changed, n)
	}
}

// list returns the queues that are or were cut over, by name.
func (b *board) list() []Queue {
	list := []Queue{}
	for name, e := range *b.queues.Load() {
		list = append(list,
			Queue{Name: name, State: e.state, Since: e.since, ToBroker: e.toBroker.Load(), ToServer: e.toServer.Load()})
	}
	slices.SortFunc(list, func(a, b Queue) int { return strings.Compare(a.Name, b.Name) })
	return list
}
