package queue

import "sort"

// Walker walks a List in either direction. The List must not change meanwhile.
type Walker struct {
	list   *List
	at, in int // chunk and index of the next handle; backwards: of the handle before it
	back   bool
}

// From starts a walk at the first handle for which passed is false. passed must hold for handles at the front only;
// nil: from the beginning.
func (l *List) From(passed func(uint32) bool) Walker {
	w := Walker{list: l}
	w.at, w.in = l.seek(passed)
	return w
}

// Back starts a walk towards the beginning at the last handle for which passed is true; nil: from the end.
func (l *List) Back(passed func(uint32) bool) Walker {
	w := Walker{list: l, at: len(l.chunks), back: true}
	if passed != nil {
		w.at, w.in = l.seek(passed)
	}
	return w
}

// Next returns the next handle, or zero at the end.
func (w *Walker) Next() uint32 {
	chunks := w.list.chunks
	if w.back {
		if w.in == 0 {
			if w.at == 0 {
				return 0
			}
			w.at--
			w.in = len(chunks[w.at].live())
		}
		w.in--
		return chunks[w.at].live()[w.in]
	}
	if w.at == len(chunks) {
		return 0
	}
	live := chunks[w.at].live()
	h := live[w.in]
	if w.in++; w.in == len(live) {
		w.at, w.in = w.at+1, 0
	}
	return h
}

// seek returns the chunk and index of the first handle for which passed is false.
func (l *List) seek(passed func(uint32) bool) (at, in int) {
	if passed == nil {
		return 0, 0
	}
	at = sort.Search(len(l.chunks), func(i int) bool {
		c := l.chunks[i]
		return !passed(c.h[len(c.h)-1])
	})
	if at == len(l.chunks) {
		return at, 0
	}
	live := l.chunks[at].live()
	return at, sort.Search(len(live), func(j int) bool { return !passed(live[j]) })
}
