package service

import "context"

// Turns limits the number of reads that run at the same time. A list takes milliseconds of processor time. Without a
// limit, a few hundred of them would delay the clients of all protocols by seconds.
type Turns struct{ slots chan struct{} }

// NewTurns makes turns for n reads at once.
func NewTurns(n int) *Turns { return &Turns{make(chan struct{}, n)} }

// Turn is the place of one read. It belongs to one goroutine.
type Turn struct {
	turns *Turns
	held  bool
	over  bool
}

// turnKey is the context key of a Turn.
type turnKey struct{}

// Take waits for a place. Service calls with the returned context give up the place from time to time, and while they
// wait for the disk. So the caller must not hold a lock for which other reads wait. Take fails only if the context ends
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

// End gives up the place permanently. It may be called more than once.
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
		t.turns.slots <- struct{}{} // other reads end, or give up their place while they wait
		t.held = true
	}
}

// turnOf is the turn of a context. For a context without one, it is a turn that has ended.
func turnOf(ctx context.Context) *Turn {
	if t, ok := ctx.Value(turnKey{}).(*Turn); ok {
		return t
	}
	return &Turn{over: true}
}

// yield lets waiting reads go first.
func (t *Turn) yield() {
	t.leave()
	t.enter()
}
