// Package queue has the data structures of queues: sorted lists of jobs (and of queues by name), and lists of waiting
// clients.
package queue

import "sort"

// chunkMax is the maximum number of handles per chunk: large enough for a short list of chunks, small enough to move
// quickly.
const chunkMax = 128

// List keeps handles, of jobs or of queues, in a total order given by Before, in chunks of 32-bit numbers: about 4
// bytes a handle, cheap at both ends, logarithmic in the middle, and readable from any offset.
//
//	chunks: [ a b c ] [ d e f g ] [ h i ]      Front is a; Push of the greatest goes behind i
type List struct {
	chunks []*chunk
	n      int
	spare  *chunk
}

// chunk holds h[lo:], in order and never empty while in a list.
type chunk struct {
	h  []uint32
	lo int
}

func (c *chunk) live() []uint32 { return c.h[c.lo:] }

// Before reports whether handle a is before handle b. No two handles are equal.
type Before func(a, b uint32) bool

// Len returns the number of handles.
func (l *List) Len() int { return l.n }

// Front returns the first handle, or zero.
func (l *List) Front() uint32 {
	if l.n == 0 {
		return 0
	}
	c := l.chunks[0]
	return c.h[c.lo]
}

// Push inserts x at its position; in constant time at the end, where most handles go.
func (l *List) Push(x uint32, before Before) {
	l.n++
	if len(l.chunks) == 0 {
		l.chunks = append(l.chunks, l.newChunk(x))
		return
	}
	last := l.chunks[len(l.chunks)-1]
	if before(last.h[len(last.h)-1], x) {
		l.pushBack(last, x)
		return
	}
	// x goes into the first chunk whose last handle is after x.
	i := sort.Search(len(l.chunks), func(i int) bool {
		c := l.chunks[i]
		return before(x, c.h[len(c.h)-1])
	})
	c := l.chunks[i]
	live := c.live()
	at := sort.Search(len(live), func(j int) bool { return before(x, live[j]) })
	switch {
	case at == 0 && c.lo > 0:
		c.lo--
		c.h[c.lo] = x
	case at == 0 && i > 0 && len(l.chunks[i-1].h) < chunkMax:
		p := l.chunks[i-1]
		p.h = append(p.h, x)
	case len(c.h) < chunkMax:
		c.insert(c.lo+at, x)
	default:
		l.split(i, at)
		l.n--
		l.Push(x, before)
	}
}

// pushBack appends to the last chunk, or starts another one.
func (l *List) pushBack(last *chunk, x uint32) {
	if len(last.h) < chunkMax {
		last.h = append(last.h, x)
		return
	}
	l.chunks = append(l.chunks, l.newChunk(x))
}

// split splits chunk i at the place of insertion, or in the middle if that is at an end.
func (l *List) split(i, at int) {
	c := l.chunks[i]
	live := c.live()
	if at == 0 || at == len(live) {
		at = len(live) / 2
	}
	if at == 0 { // a single handle after a long unused front
		c.h, c.lo = append(make([]uint32, 0, chunkMax), live...), 0
		return
	}
	right := &chunk{h: append(make([]uint32, 0, chunkMax), live[at:]...)}
	c.h = c.h[:c.lo+at]
	if c.lo > 0 {
		c.h, c.lo = append(c.h[:0], live[:at]...), 0
	}
	l.chunks = append(l.chunks, nil)
	copy(l.chunks[i+2:], l.chunks[i+1:])
	l.chunks[i+1] = right
}

// Remove removes x and reports whether it was there.
func (l *List) Remove(x uint32, before Before) bool {
	if l.n == 0 {
		return false
	}
	if c := l.chunks[0]; c.h[c.lo] == x {
		l.removeFrom(0, 0)
		return true
	}
	i := sort.Search(len(l.chunks), func(i int) bool {
		c := l.chunks[i]
		return !before(c.h[len(c.h)-1], x)
	})
	if i == len(l.chunks) {
		return false
	}
	live := l.chunks[i].live()
	at := sort.Search(len(live), func(j int) bool { return !before(live[j], x) })
	if at == len(live) || live[at] != x {
		return false
	}
	l.removeFrom(i, at)
	return true
}

// At returns the handle at offset, or zero past the end.
func (l *List) At(offset int) uint32 {
	for _, c := range l.chunks {
		live := c.live()
		if offset < len(live) {
			return live[offset]
		}
		offset -= len(live)
	}
	return 0
}

// Slice appends up to limit handles, starting at offset, to into.
func (l *List) Slice(offset, limit int, into []uint32) []uint32 {
	for _, c := range l.chunks {
		if limit <= 0 {
			break
		}
		live := c.live()
		if offset >= len(live) {
			offset -= len(live)
			continue
		}
		live = live[offset:min(len(live), offset+limit)]
		into, offset, limit = append(into, live...), 0, limit-len(live)
	}
	return into
}

// Search returns the number of handles at the front for which pred is true; as with sort.Search, it must be false for
// all others.
func (l *List) Search(pred func(x uint32) bool) (n int) {
	i := sort.Search(len(l.chunks), func(i int) bool {
		h := l.chunks[i].h
		return !pred(h[len(h)-1])
	})
	for _, c := range l.chunks[:i] {
		n += len(c.live())
	}
	if i < len(l.chunks) {
		live := l.chunks[i].live()
		n += sort.Search(len(live), func(j int) bool { return !pred(live[j]) })
	}
	return n
}

func (l *List) removeFrom(i, at int) {
	l.n--
	c := l.chunks[i]
	if at == 0 {
		c.lo++
	} else {
		c.h = append(c.h[:c.lo+at], c.h[c.lo+at+1:]...)
	}
	if c.lo < len(c.h) {
		return
	}
	switch {
	case len(l.chunks) == 1: // the next handle reuses it
		l.chunks[0] = nil
		l.chunks = l.chunks[:0]
	case i == 0: // the usual case: do not copy the list
		l.chunks[0] = nil
		l.chunks = l.chunks[1:]
	default:
		l.chunks = append(l.chunks[:i], l.chunks[i+1:]...)
	}
	c.h, c.lo = c.h[:0], 0
	l.spare = c
}

func (l *List) newChunk(x uint32) *chunk {
	c := l.spare
	l.spare = nil
	if c == nil {
		c = &chunk{}
	}
	c.h = append(c.h, x)
	return c
}

func (c *chunk) insert(at int, x uint32) {
	c.h = append(c.h, 0)
	copy(c.h[at+1:], c.h[at:])
	c.h[at] = x
}
