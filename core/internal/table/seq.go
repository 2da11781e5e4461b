package table

import "slices"

// seqIndex finds the handle of a Seq. Numbers are assigned in ascending order, so pages of neighbouring numbers are
// well filled. A page is freed with its last job.
type seqIndex struct {
	pages map[uint64]*seqPage
	order []uint64 // page numbers, ascending: all existing pages, and some that are gone
	most  int      // maximum number of pages since the map was created
	spare *seqPage // empty, so that a nearly empty broker does not allocate one per job
	near  [8]*seqPage
}

// keepMap is up to how many pages a map may have had to be kept once it is empty.
const keepMap = 64

const seqPageBits = 6

type seqPage struct {
	number  uint64
	handles [1 << seqPageBits]uint32
	live    uint32
}

// page is the page with a number; nil: there is none. Most operations concern jobs with neighbouring numbers. So near
// caches the pages that were found last, by the low bits of their numbers.
func (x *seqIndex) page(n uint64) *seqPage {
	if p := x.near[n%uint64(len(x.near))]; p != nil && p.number == n {
		return p
	}
	return x.farPage(n)
}

func (x *seqIndex) farPage(n uint64) *seqPage {
	p := x.pages[n]
	if p != nil {
		x.near[n%uint64(len(x.near))] = p
	}
	return p
}

func (x *seqIndex) get(seq uint64) uint32 {
	p := x.page(seq >> seqPageBits)
	if p == nil {
		return 0
	}
	return p.handles[seq&(1<<seqPageBits-1)]
}

func (x *seqIndex) put(seq uint64, h uint32) {
	n := seq >> seqPageBits
	p := x.page(n)
	if p == nil {
		if p, x.spare = x.spare, nil; p == nil {
			p = &seqPage{}
		}
		p.number = n
		x.pages[n] = p
		x.most = max(x.most, len(x.pages))
		x.note(n)
	}
	p.handles[seq&(1<<seqPageBits-1)] = h
	p.live++
}

// note inserts a page number, nearly always at the end.
func (x *seqIndex) note(n uint64) {
	if len(x.order) == 0 || x.order[len(x.order)-1] < n {
		x.order = append(x.order, n)
		return
	}
	if at, there := slices.BinarySearch(x.order, n); !there {
		x.order = slices.Insert(x.order, at, n)
	}
}

func (x *seqIndex) drop(seq uint64) {
	p := x.page(seq >> seqPageBits)
	p.handles[seq&(1<<seqPageBits-1)] = 0
	if p.live--; p.live > 0 {
		return
	}
	delete(x.pages, p.number)
	x.near[p.number%uint64(len(x.near))] = nil
	x.spare = p
	if len(x.pages) == 0 {
		x.order = x.order[:0]
		if x.most > keepMap {
			*x = seqIndex{pages: map[uint64]*seqPage{}, spare: p} // a Go map does not shrink
		}
	}
	if len(x.order) > 2*len(x.pages)+64 {
		x.order = slices.DeleteFunc(x.order, func(n uint64) bool { return x.pages[n] == nil })
	}
}

// seqWalker walks all jobs in the order of their numbers, in either direction. No job may be added or removed
// meanwhile.
type seqWalker struct {
	of   *seqIndex
	at   int // index into order
	in   int // next position in the page
	back bool
}

// from starts a walk at the job with number seq, or the next one in the walk's direction.
func (x *seqIndex) from(seq uint64, back bool) seqWalker {
	at, there := slices.BinarySearch(x.order, seq>>seqPageBits)
	w := seqWalker{of: x, at: at, back: back}
	switch {
	case there:
		w.in = int(seq & (1<<seqPageBits - 1))
	case back:
		w.at, w.in = at-1, 1<<seqPageBits-1
	}
	return w
}

// Next returns the next job, or zero at the end.
func (w *seqWalker) Next() uint32 {
	for w.at >= 0 && w.at < len(w.of.order) {
		p := w.of.pages[w.of.order[w.at]]
		for p != nil && w.in >= 0 && w.in < 1<<seqPageBits {
			h := p.handles[w.in]
			if w.in++; w.back {
				w.in -= 2
			}
			if h != 0 {
				return h
			}
		}
		if w.at, w.in = w.at+1, 0; w.back {
			w.at, w.in = w.at-2, 1<<seqPageBits-1
		}
	}
	return 0
}

// Handle returns the handle of the job with a number; zero: there is none.
func (t *Table) Handle(seq uint64) uint32 { return t.bySeq.get(seq) }

// From starts a walk over all jobs at the job with number seq, or the next job in the walk's direction.
func (t *Table) From(seq uint64, back bool) seqWalker { return t.bySeq.from(seq, back) }
