package machine

import (
	"testing"

	"broker/core/internal/table"
)

// What one leader gave out, and lost, is not given out by those that follow.
func TestEpochsOfLeadersDiffer(t *testing.T) {
	const terms, each = 2 * epochStep, 5
	given := make(map[uint32]uint64) // the term that gave out an epoch last
	for term := uint64(1); term <= terms; term++ {
		m := &Machine{opts: Options{Term: term}}
		e := table.Entry{}
		for before := uint32(0); before < each*epochStep; before = e.Epoch {
			m.raiseEpoch(&e)
			if e.Epoch <= before || e.Epoch > before+epochStep {
				t.Fatalf("term %d: epoch %d follows %d", term, e.Epoch, before)
			}
			if other := given[e.Epoch]; other != 0 && other+epochStep > term {
				t.Fatalf("terms %d and %d give out epoch %d", other, term, e.Epoch)
			}
			given[e.Epoch] = term
		}
	}
	alone, e := &Machine{}, table.Entry{}
	if alone.raiseEpoch(&e); e.Epoch != 1 {
		t.Errorf("a broker without a cluster begins with epoch %d", e.Epoch)
	}
}
