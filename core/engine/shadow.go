package engine

import (
	"context"
	"errors"

	"broker/core"
	"broker/core/internal/machine"
)

// Shadow is an index that follows the store of a running engine, like a Standby on another node, but one call at a time.
// The simulation compares it with an engine that reads the whole store.
type Shadow struct {
	engine *Engine
	index  *index
}

// OpenShadow starts a Shadow. It must be closed before the engine. It is a function, not a method, so that the linker leaves it out
// of the program.
func OpenShadow(e *Engine) (*Shadow, error) {
	o := e.opts.machine()
	s := &Shadow{engine: e, index: newIndex(e.store, machine.Options{Persist: true, StartedAt: o.StartedAt}, e.opts.Clock.Now)}
	if err := s.index.load(context.Background()); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the Shadow.
func (s *Shadow) Close() { s.index.close() }

// Update reads the latest changes of the store.
func (s *Shadow) Update() error { return s.index.update(context.Background(), nil) }

// Compare returns the first difference between an engine that takes over from the Shadow and an engine that reads the store
// now. It ends the Shadow.
func (s *Shadow) Compare() error {
	defer s.Close()
	o := s.engine.opts.machine()
	warm, err := s.index.takeOver(context.Background(), o)
	if err != nil {
		return err
	}
	now := max(warm.Now(), s.engine.opts.Clock.Now()) // the clock may have been set back a little, which a follower tolerates
	o = s.engine.opts.machine()
	cold, err := build(context.Background(), s.engine.store, o, func() core.Instant { return now }, nil)
	if err != nil {
		return err
	}
	return errors.Join(warm.Check(), cold.Check(), machine.Compare(warm, cold))
}
