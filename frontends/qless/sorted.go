package qless

import (
	"cmp"
	"slices"
)

// sortedSet keeps names in the order of their scores; names with equal scores are in alphabetical order. Its members
// are in blocks, so that a change moves few members in memory.
type sortedSet struct {
	scores map[string]float64 // empty for lists of jobs, because each job knows its own scores
	blocks [][]member
	size   int
}

// member is a name with its score.
type member struct {
	score float64
	name  string
}

const blockSize = 512

func compareMembers(a, b member) int {
	if c := cmp.Compare(a.score, b.score); c != 0 {
		return c
	}
	return cmp.Compare(a.name, b.name)
}

func (z *sortedSet) len() int { return z.size }

func (z *sortedSet) score(name string) (float64, bool) {
	s, ok := z.scores[name]
	return s, ok
}

func (z *sortedSet) has(name string) bool {
	_, ok := z.scores[name]
	return ok
}

// block is the index of the block where a member is or belongs.
func (z *sortedSet) block(m member) int {
	i, _ := slices.BinarySearchFunc(z.blocks, m,
		func(b []member, m member) int { return compareMembers(b[len(b)-1], m) })
	return min(i, len(z.blocks)-1)
}

// add gives a name a score.
func (z *sortedSet) add(name string, score float64) {
	if old, there := z.scores[name]; there {
		if old == score {
			return
		}
		z.remove(name)
	}
	if z.scores == nil {
		z.scores = map[string]float64{}
	}
	z.scores[name] = score
	z.insert(member{score, name})
}

func (z *sortedSet) remove(name string) {
	if score, there := z.scores[name]; there {
		delete(z.scores, name)
		z.delete(member{score, name})
	}
}

// insert adds a new member to a set whose scores the caller keeps.
func (z *sortedSet) insert(m member) {
	z.size++
	if len(z.blocks) == 0 {
		z.blocks = [][]member{{m}}
		return
	}
	k := z.block(m)
	i, _ := slices.BinarySearchFunc(z.blocks[k], m, compareMembers)
	if b := z.blocks[k]; len(b) == blockSize {
		half := blockSize / 2
		if i == blockSize && k == len(z.blocks)-1 { // members are often added in order, so leave a full block behind
			half = blockSize
		}
		z.blocks = slices.Insert(z.blocks, k+1, slices.Clone(b[half:]))
		z.blocks[k] = slices.Clip(b[:half])
		if i > half || half == blockSize {
			k, i = k+1, i-half
		}
	}
	z.blocks[k] = slices.Insert(z.blocks[k], i, m)
}

// delete removes a member that insert has added.
func (z *sortedSet) delete(m member) {
	if len(z.blocks) == 0 {
		return
	}
	k := z.block(m)
	i, there := slices.BinarySearchFunc(z.blocks[k], m, compareMembers)
	if !there {
		return
	}
	z.size--
	if z.blocks[k] = slices.Delete(z.blocks[k], i, i+1); len(z.blocks[k]) == 0 {
		z.blocks = slices.Delete(z.blocks, k, k+1)
	}
}

// each calls fn for the members from a position on, in order, until fn returns false.
func (z *sortedSet) each(from int, fn func(member) bool) {
	for _, b := range z.blocks {
		if from >= len(b) {
			from -= len(b)
			continue
		}
		for _, m := range b[from:] {
			if !fn(m) {
				return
			}
		}
		from = 0
	}
}

// eachBack is each from the last member to the first.
func (z *sortedSet) eachBack(from int, fn func(member) bool) {
	for k := len(z.blocks) - 1; k >= 0; k-- {
		b := z.blocks[k]
		if from >= len(b) {
			from -= len(b)
			continue
		}
		for i := len(b) - 1 - from; i >= 0; i-- {
			if !fn(b[i]) {
				return
			}
		}
		from = 0
	}
}

// bounds converts Redis's first and last index to a position and a number. Negative indexes count from the end.
func bounds(first, last, length int) (from, n int) {
	if first < 0 {
		first = max(first+length, 0)
	}
	if last < 0 {
		last += length
	}
	last = min(last, length-1)
	return first, max(last-first+1, 0)
}

// slice lists the names between two indexes; back: counted from the end.
func (z *sortedSet) slice(first, last int, back bool) []string {
	from, n := bounds(first, last, z.len())
	var names []string
	walk := z.each
	if back {
		walk = z.eachBack
	}
	if n == 0 {
		return nil
	}
	walk(from, func(m member) bool {
		names = append(names, m.name)
		return len(names) < n
	})
	return names
}

// rank is the number of members with a score below s, or at most s.
func (z *sortedSet) rank(s float64, including bool) int {
	n := 0
	for _, b := range z.blocks {
		if last := b[len(b)-1].score; last < s || including && last == s {
			n += len(b)
			continue
		}
		i, _ := slices.BinarySearchFunc(b, s, func(m member, s float64) int {
			if m.score < s || including && m.score == s {
				return -1
			}
			return 1
		})
		return n + i
	}
	return n
}

// count is the number of members with scores from low to high.
func (z *sortedSet) count(low, high float64) int {
	return max(z.rank(high, true)-z.rank(low, false), 0)
}

// between lists names with scores from low to high. It skips the first offset names. A negative count means no limit.
func (z *sortedSet) between(low, high float64, offset, count int) []string {
	first, end := z.rank(low, false), z.rank(high, true)
	if offset < 0 || count == 0 || first+offset >= end {
		return nil
	}
	return z.slice(first+offset, z.last(first+offset, end, count), false)
}

// betweenBack is between from the highest score down.
func (z *sortedSet) betweenBack(high, low float64, offset, count int) []string {
	first, end := z.len()-z.rank(high, true), z.len()-z.rank(low, false)
	if offset < 0 || count == 0 || first+offset >= end {
		return nil
	}
	return z.slice(first+offset, z.last(first+offset, end, count), true)
}

func (*sortedSet) last(first, end, count int) int {
	if count < 0 {
		return end - 1
	}
	return min(first+count, end) - 1
}
