package sim

import "fmt"

// steps is the length of a life.
const steps = 1200

// play runs the given steps in a world with a seed, up to the first failure.
func play(seed uint64, steps []int) (w *world, lived int, err error) {
	w, err = newWorld(seed)
	lived, err = w.live(steps, err)
	return w, lived, err
}

// live runs the steps unless err is already set.
func (w *world) live(steps []int, err error) (lived int, _ error) {
	for ; err == nil && lived < len(steps); lived++ {
		w.begin(steps[lived])
		if err = w.step(); err != nil {
			err = fmt.Errorf("step %d: %w", steps[lived], err)
		}
	}
	return lived, err
}

// numbers returns 0 to n-1.
func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// maxReplays limits how often a failing life is replayed.
const maxReplays = 400

// shrink removes steps, in smaller and smaller blocks, as long as there is still a failure. It returns the remaining
// ones.
func shrink(steps []int, fails func([]int) bool) []int {
	replays := 0
	for size := len(steps) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(steps); {
			if replays++; replays > maxReplays {
				return steps
			}
			shorter := append(append([]int{}, steps[:at]...), steps[at+size:]...)
			if fails(shorter) {
				steps = shorter
			} else {
				at += size
			}
		}
	}
	return steps
}
