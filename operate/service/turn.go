package service

import "context"

// Turns bounds how many reads are worked on at once. Lists take milliseconds of a processor each: without a bound, a few hundred
// of them at once would keep the clients of all protocols waiting for seconds.
type Turns struct{ slots chan struct{} }

// NewTurns makes turns for n reads at once.
func NewTurns(n int) *Turns { return &Turns{make(chan struct{}, n)} }

// Turn is one read's place among those that are worked on. It belongs to one goroutine.
type Turn struct {
	turns *Turns
	held  bool
	over  bool
}

// turnKey is where a context has its Turn.
type turnKey struct{}

// Take waits for a place. Calls of the service with the context let other reads go first from time to time, and leave the place
// while they wait for the disk: the caller must not hold a lock that other reads wait for. Take fails only if the context ends
// first.
func (t *Turns) Take(ctx context.Context) (context.Context, *Turn, error) {
	turn := &Turn{turns: t}
	select {
	case t.slots <- struct{}{}:
		turn.held = true
		return context.WithValue(ctx, turnKey{}, turn), turn, nil
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

// End gives the place back for good. It may be called again.
func (t *Turn) End() {
	t.leave()
	t.over = true
}

func (t *Turn) leave() {
	if t.held {
		<-t.turns.slots
		t.held = false
	}
}

func (t *Turn) enter() {
	if !t.held && !t.over {
		t.turns.slots <- struct{}{} // those in front of it end, or leave while they wait
		t.held = true
	}
}

// turnOf is the turn of a context. A context without one has a turn that is over.
func turnOf(ctx context.Context) *Turn {
	if t, ok := ctx.Value(turnKey{}).(*Turn); ok {
		return t
	}
	return &Turn{over: true}
}

// yield lets reads that wait for a place go first.
func (t *Turn) yield() {
	t.leave()
	t.enter()
}
