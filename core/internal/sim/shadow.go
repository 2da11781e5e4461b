package sim

import (
	"fmt"

	"broker/core/engine"
)

// followStore keeps an index up to date with the store, as on another node of a cluster, and compares it with a fresh
// start.
func (w *world) followStore() (err error) {
	switch {
	case w.shadow == nil:
		w.note("a shadow follows the store")
		w.shadow, err = engine.OpenShadow(w.engine)
		return err
	case w.rng.IntN(4) > 0:
		w.note("the shadow is updated")
		return w.shadow.Update()
	}
	w.note("the shadow takes over")
	err = w.shadow.Compare()
	w.shadow = nil
	if err != nil {
		return fmt.Errorf("a follower differs from a start: %w", err)
	}
	w.compared++
	return nil
}
