package remote

import (
	"slices"

	"broker/core"
)

// pairs says which operations replies answer, by their tags. It is asked in the order of the replies. Operations of one
// tag are answered in order: each gets one reply, and the last one gets all that follow.
type pairs struct {
	ops   []core.Op
	rises bool   // each has a higher tag than the one before, so no two have the same
	at    int    // with rises: where the last one was found, since replies mostly are in the order of operations
	taken []bool // otherwise: what has its reply, while others of the same tag follow; nil: nothing
}

func pairsOf(ops []core.Op) pairs {
	p := pairs{ops: ops, rises: true}
	var before uint64
	for i, op := range ops {
		tag := op.TagOf()
		if i > 0 && tag <= before {
			p.rises = false
			break
		}
		before = tag
	}
	return p
}

// lostPairs are the pairs of lost operations.
func lostPairs(all []*lost) pairs {
	ops := make([]core.Op, len(all))
	for i, l := range all {
		ops[i] = l.op
	}
	return pairsOf(ops)
}

// find returns the index of the operation that a reply with a tag answers; -1: none of these.
func (p *pairs) find(tag uint64) int {
	i := p.at
	for range p.ops {
		if p.ops[i].TagOf() == tag && (p.taken == nil || !p.taken[i]) {
			if p.rises {
				p.at = i
			} else {
				p.take(i, tag)
			}
			return i
		}
		if i++; i == len(p.ops) {
			i = 0
		}
	}
	return -1
}

// take notes that an operation has its reply, if others of its tag follow.
func (p *pairs) take(i int, tag uint64) {
	if !slices.ContainsFunc(p.ops[i+1:], func(op core.Op) bool { return op.TagOf() == tag }) {
		return
	}
	if p.taken == nil {
		p.taken = make([]bool, len(p.ops))
	}
	p.taken[i] = true
}
