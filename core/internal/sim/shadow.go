package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"broker/core"
	"broker/core/engine"
	"broker/core/internal/index"
	"broker/core/internal/machine"
	"broker/core/internal/machine/machinetest"
	"broker/core/internal/record"
	"broker/core/internal/store"
)

// storeOf keeps the store of a running engine, which passes it to its archive.
type storeOf struct{ store *store.Store }

var _ engine.Shipper = (*storeOf)(nil)

// Begin implements engine.Shipper.
func (x *storeOf) Begin(s *store.Store, _ engine.Recent) { x.store = s }

// Add implements engine.Shipper.
func (*storeOf) Add(*record.Entry) {}

// End implements engine.Shipper.
func (*storeOf) End() {}

// followStore keeps an index up to date with the store, as on another node of a cluster, and compares it with a fresh
// start.
func (w *world) followStore() (err error) {
	ctx := context.Background()
	switch {
	case w.shadow == nil:
		w.note("a shadow follows the store")
		w.shadow = index.New(w.stored.store, machine.Options{Persist: true, StartedAt: w.clk.Now()}, w.clk.Now)
		return w.shadow.Load(ctx)
	case w.rng.IntN(4) > 0:
		w.note("the shadow is updated")
		return w.shadow.Update(ctx, nil)
	}
	w.note("the shadow takes over")
	err = w.compareShadow(ctx)
	w.endShadow()
	if err != nil {
		return fmt.Errorf("a follower differs from a start: %w", err)
	}
	w.compared++
	return nil
}

// compareShadow returns the first difference between an engine that takes over from the shadow and an engine that reads
// the store now.
func (w *world) compareShadow(ctx context.Context) error {
	warm, err := w.shadow.TakeOver(ctx, w.machineOptions())
	if err != nil {
		return err
	}
	now := max(warm.Now(), w.clk.Now()) // the clock may have been set back a little, which a follower tolerates
	cold, err := index.Build(ctx, w.stored.store, w.machineOptions(), func() core.Instant { return now }, nil)
	if err != nil {
		return err
	}
	return errors.Join(warm.Check(), cold.Check(), machinetest.Compare(warm, cold))
}

// endShadow ends the index. It must happen before the store is closed.
func (w *world) endShadow() {
	if w.shadow != nil {
		w.shadow.Close()
		w.shadow = nil
	}
}

// machineOptions are options of a machine like those of the world's engine.
func (w *world) machineOptions() machine.Options {
	return machine.Options{
		Persist: true, Await: w.mode == engine.Sync, DefaultLease: 30 * time.Minute, CacheBytes: cacheBytes,
		PoisonAfter: poisonAfter, Wakeup: -1,
		Random: rand.New(rand.NewPCG(1, 1)), StartedAt: w.clk.Now(),
	}
}
