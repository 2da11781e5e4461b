package remote

import (
	"testing"

	"broker/core"
)

// Replies find what they answer, in whatever order they come; of operations with one tag each gets its own, and the
// last one all that follow.
func TestRepliesFindWhatTheyAnswer(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		tags, replies []uint64
		want          []int // positions; -1: none
	}{
		"in order":             {[]uint64{1, 2, 3}, []uint64{1, 2, 3}, []int{0, 1, 2}},
		"several replies":      {[]uint64{1, 2}, []uint64{1, 1, 2, 2}, []int{0, 0, 1, 1}},
		"out of order":         {[]uint64{1, 2, 3}, []uint64{3, 1, 2, 1}, []int{2, 0, 1, 0}},
		"of nothing":           {[]uint64{1, 2}, []uint64{7, 2, 0}, []int{-1, 1, -1}},
		"no operations":        {nil, []uint64{1}, []int{-1}},
		"one tag":              {[]uint64{3, 3, 3}, []uint64{3, 3, 3, 3}, []int{0, 1, 2, 2}},
		"one tag among others": {[]uint64{1, 3, 2, 3}, []uint64{2, 3, 1, 3, 3}, []int{2, 1, 0, 3, 3}},
		"tags fall":            {[]uint64{9, 5, 1}, []uint64{9, 5, 5, 1, 9}, []int{0, 1, 1, 2, 0}},
	} {
		var ops []core.Op
		for _, tag := range one.tags {
			ops = append(ops, &core.Complete{Tag: tag})
		}
		answered := pairsOf(ops)
		for i, tag := range one.replies {
			if got := answered.find(tag); got != one.want[i] {
				t.Errorf("%s: reply %d answers %d, want %d", name, i, got, one.want[i])
			}
		}
	}
}

// The leader adds the time of its own job to the reply to each of two submissions with one tag.
func TestSubmissionsOfOneTagGetTheTimesOfTheirJobs(t *testing.T) {
	t.Parallel()
	ops := []core.Op{
		&core.Submit{Tag: 4, Job: &core.Job{CreatedAt: 10}}, &core.Submit{Tag: 4, Job: &core.Job{CreatedAt: 20}},
	}
	replies := []core.Reply{{Tag: 4, Kind: core.Submitted}, {Tag: 4, Kind: core.Submitted}}
	sayCreated(ops, replies)
	if a, b := createdAt(&replies[0]), createdAt(&replies[1]); a != 10 || b != 20 {
		t.Errorf("the times are %d and %d, want 10 and 20", a, b)
	}
}
