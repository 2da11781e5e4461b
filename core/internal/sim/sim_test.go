package sim

import (
	"os"
	"strconv"
	"testing"
)

// steps is how long one life lasts.
const steps = 1500

// TestPromisesHoldInSimulatedLives runs SIM_SEEDS lives (default 30) from SIM_FIRST on.
func TestPromisesHoldInSimulatedLives(t *testing.T) {
	t.Parallel()
	first, lives := number("SIM_FIRST", 1), number("SIM_SEEDS", 30)
	total, crashes := 0, 0
	for seed := first; seed < first+lives; seed++ {
		w, err := newWorld(uint64(seed))
		for i := 0; err == nil && i < steps; i++ {
			err = w.step()
			total++
		}
		if err != nil {
			t.Fatalf("seed %d (run again with SIM_FIRST=%d SIM_SEEDS=1): %v\nlast steps:\n%s", seed, seed, err, w.history())
		}
		crashes += w.crashes
		if err := w.engine.Shutdown(); err != nil {
			t.Fatalf("seed %d: shutdown: %v", seed, err)
		}
	}
	t.Logf("%d lives, %d steps, %d crashes", lives, total, crashes)
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}
