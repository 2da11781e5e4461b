package queue

import "math"

// Waiters holds the clients that wait on queues, the longest waiting first. One client may wait on many queues; each
// entry is a node in a slab, linked in the Line of its queue and with the other entries of the client.
type Waiters struct {
	nodes []node
	free  uint32
}

type node struct {
	client, queue uint32
	next, prev    uint32 // in the Line
	sibling       uint32 // the client's next entry
	counted       bool
}

// Line is the list of one queue's waiters, with the place of a walk through it; the zero Line is empty.
type Line struct{ head, tail, counted, at uint32 }

// Counted returns the number of waiters that joined with count.
func (l *Line) Counted() int { return int(l.counted) }

// Empty reports whether no client waits.
func (l *Line) Empty() bool { return l.head == 0 }

// Rewind puts the walk at the head of the Line.
func (l *Line) Rewind() { l.at = 0 }

// Here returns the client at the place of the walk; zero: nobody waits.
func (w *Waiters) Here(l *Line) (client uint32) {
	if l.at == 0 {
		l.at = l.head
	}
	if l.at == 0 {
		return 0
	}
	return w.nodes[l.at-1].client
}

// Next moves the walk on to the client after its place; zero: there is none, and the walk is at the head again. A walk
// also moves on if the client at its place leaves.
func (w *Waiters) Next(l *Line) (client uint32) {
	if l.at = w.nodes[l.at-1].next; l.at == 0 {
		return 0
	}
	return w.nodes[l.at-1].client
}

// All calls fn with the clients in the Line, the longest waiting first; fn must not change the Line.
func (w *Waiters) All(l *Line, fn func(client uint32)) {
	for i := l.head; i != 0; i = w.nodes[i-1].next {
		fn(w.nodes[i-1].client)
	}
}

// Join appends client to the Line of queue; entries is the head of the client's own list of entries. With count,
// Line.Counted includes the client.
func (w *Waiters) Join(client, queue uint32, l *Line, entries *uint32, count bool) {
	var i uint32
	if w.free != 0 {
		i = w.free
		w.free = w.nodes[i-1].next
	} else {
		w.nodes = append(w.nodes, node{})
		i = uint32(len(w.nodes))
	}
	w.nodes[i-1] = node{client: client, queue: queue, prev: l.tail, sibling: *entries, counted: count}
	if count {
		l.counted++
	}
	if l.tail != 0 {
		w.nodes[l.tail-1].next = i
	} else {
		l.head = i
	}
	l.tail = i
	*entries = i
}

// Each calls fn with the queues on which a client waits, in reverse order of joining; fn must not change entries.
func (w *Waiters) Each(entries uint32, fn func(queue uint32)) { w.First(entries, math.MaxInt, fn) }

// First is Each for at most most queues.
func (w *Waiters) First(entries uint32, most int, fn func(queue uint32)) {
	for i := entries; i != 0 && most > 0; i = w.nodes[i-1].sibling {
		fn(w.nodes[i-1].queue)
		most--
	}
}

// Leave removes a client from all Lines; line returns the Line of a queue, and left is called for each queue.
func (w *Waiters) Leave(entries *uint32, line func(queue uint32) *Line, left func(queue uint32)) {
	for i := *entries; i != 0; {
		n := &w.nodes[i-1]
		l := line(n.queue)
		if n.prev != 0 {
			w.nodes[n.prev-1].next = n.next
		} else {
			l.head = n.next
		}
		if n.next != 0 {
			w.nodes[n.next-1].prev = n.prev
		} else {
			l.tail = n.prev
		}
		if l.at == i {
			l.at = n.next
		}
		if n.counted {
			l.counted--
		}
		queue, sibling := n.queue, n.sibling
		*n = node{next: w.free}
		w.free = i
		i = sibling
		if left != nil {
			left(queue)
		}
	}
	*entries = 0
}
