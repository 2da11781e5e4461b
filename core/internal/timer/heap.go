// Package timer keeps deadlines that can be moved and removed. It has no pointers: millions of deadlines cost the
// garbage collector nothing.
package timer

import "broker/core"

// ID identifies a deadline in its Heap; zero is none.
type ID uint32

// Owner is the owner of a deadline: a kind and a number chosen by the caller.
type Owner struct {
	Kind   uint8
	Handle uint32
}

// Heap is a 4-ary min-heap: it is less deep than a binary heap, and the children of a node share a cache line. The
// zero Heap is ready for use.
type Heap struct {
	items []item
	where []uint32 // by ID-1: index in items, or the next free ID
	kinds []uint8  // by ID-1
	free  uint32   // head of the list of free IDs
}

type item struct {
	at     core.Instant
	id     ID
	handle uint32
}

const arity = 4

// Add adds a deadline.
func (h *Heap) Add(at core.Instant, o Owner) ID {
	var id ID
	if h.free != 0 {
		id = ID(h.free)
		h.free = h.where[id-1]
	} else {
		h.where = append(h.where, 0)
		h.kinds = append(h.kinds, 0)
		id = ID(len(h.where))
	}
	h.kinds[id-1] = o.Kind
	h.items = append(h.items, item{at: at, id: id, handle: o.Handle})
	h.up(len(h.items) - 1)
	return id
}

// Remove removes a deadline and sets the caller's ID to zero; it does nothing if the ID is zero.
func (h *Heap) Remove(id *ID) {
	if *id == 0 {
		return
	}
	h.removeAt(int(h.where[*id-1]))
	*id = 0
}

// At returns the instant of a deadline, or zero if id is zero.
func (h *Heap) At(id ID) core.Instant {
	if id == 0 {
		return 0
	}
	return h.items[h.where[id-1]].at
}

// Next returns the earliest deadline, or zero.
func (h *Heap) Next() core.Instant {
	if len(h.items) == 0 {
		return 0
	}
	return h.items[0].at
}

// Due returns the owner of the earliest deadline if that is not after now.
func (h *Heap) Due(now core.Instant) (Owner, bool) {
	if len(h.items) == 0 || h.items[0].at > now {
		return Owner{}, false
	}
	it := h.items[0]
	return Owner{Kind: h.kinds[it.id-1], Handle: it.handle}, true
}

// PopDue removes the earliest deadline if it is not after now. The owner must clear its ID.
func (h *Heap) PopDue(now core.Instant) (Owner, bool) {
	o, due := h.Due(now)
	if due {
		h.removeAt(0)
	}
	return o, due
}

// Len returns the number of deadlines.
func (h *Heap) Len() int { return len(h.items) }

func (h *Heap) removeAt(i int) {
	id := h.items[i].id
	last := len(h.items) - 1
	if i != last {
		h.put(i, h.items[last])
	}
	h.items = h.items[:last]
	if i != last {
		h.up(i)
		h.down(i)
	}
	h.where[id-1] = h.free
	h.free = uint32(id)
	h.shrink()
}

// shrink frees memory after many deadlines have passed.
func (h *Heap) shrink() {
	if c := cap(h.items); c > 4096 && len(h.items) < c/4 {
		h.items = append(make([]item, 0, c/2), h.items...)
	}
}

func (h *Heap) put(i int, it item) {
	h.items[i] = it
	h.where[it.id-1] = uint32(i)
}

func (h *Heap) up(i int) {
	it := h.items[i]
	for i > 0 {
		parent := (i - 1) / arity
		if h.items[parent].at <= it.at {
			break
		}
		h.put(i, h.items[parent])
		i = parent
	}
	h.put(i, it)
}

func (h *Heap) down(i int) {
	it := h.items[i]
	for {
		first := i*arity + 1
		if first >= len(h.items) {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, len(h.items)); c++ {
			if h.items[c].at < h.items[least].at {
				least = c
			}
		}
		if it.at <= h.items[least].at {
			break
		}
		h.put(i, h.items[least])
		i = least
	}
	h.put(i, it)
}

// Shift moves all selected deadlines by d after the clock was set.
func (h *Heap) Shift(which func(Owner) bool, d core.Instant) {
	for i, it := range h.items {
		if which(Owner{Kind: h.kinds[it.id-1], Handle: it.handle}) {
			h.items[i].at += d
		}
	}
	for i := len(h.items) - 1; i >= 0; i-- {
		h.down(i)
	}
}
