package table

import (
	"hash/maphash"
	"slices"

	"broker/core"
)

// Digest represents a text in an index: 128 bits with a random seed of this process. Clients cannot construct
// collisions, and accidental collisions are practically impossible. It never leaves the process.
type Digest [2]uint64

// seeds are the random seeds of this process.
var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// DigestOf represents a text in the indexes.
func DigestOf(s string) Digest {
	d := Digest{maphash.String(seeds[0], s), maphash.String(seeds[1], s)}
	if d == (Digest{}) {
		d[0] = 1 // zero means "none"
	}
	return d
}

// Find returns the handle of the job that ref names, or zero.
func (t *Table) Find(ref core.Ref) uint32 {
	if ref.Seq != 0 {
		return t.Handle(ref.Seq)
	}
	if h := t.byID[DigestOf(ref.ID)]; h != 0 {
		return h
	}
	if seq, milli, ok := core.ParseMintedID(ref.ID); ok {
		if h := t.Handle(seq); h != 0 && t.At(h).ID == (Digest{}) && int64(t.At(h).CreatedAt/1000) == milli {
			return h
		}
	}
	if seq, ok := core.ParseAlias(ref.ID); ok {
		if h := t.Handle(seq); h != 0 && !t.At(h).Has(IDIsUUIDv4) {
			return h
		}
	}
	return 0
}

// FindUnique returns the unfinished job that holds a key in a queue, or in any queue if queue is zero.
func (t *Table) FindUnique(queue uint32, key string) uint32 {
	return t.FindHolder(queue, DigestOf(key))
}

// FindHolder is FindUnique for the digest of a key.
func (t *Table) FindHolder(queue uint32, key Digest) uint32 {
	h := t.byUnique[key]
	for h != 0 {
		e := t.At(h)
		if queue == 0 || e.Queue == queue {
			return h
		}
		h = e.UniqueNext
	}
	return 0
}

// LockUnique gives a job a unique key, which must be free in its queue.
func (t *Table) LockUnique(h uint32, key Digest) {
	e := t.At(h)
	e.Unique = key
	e.UniqueNext = t.byUnique[e.Unique]
	t.byUnique[e.Unique] = h
}

// FreeUnique frees the key of a job; it does nothing if the key is free.
func (t *Table) FreeUnique(h uint32, e *Entry) {
	if e.Unique != (Digest{}) {
		t.dropUnique(h, e)
	}
}

func (t *Table) dropUnique(h uint32, e *Entry) {
	if first := t.byUnique[e.Unique]; first == h {
		if e.UniqueNext == 0 {
			delete(t.byUnique, e.Unique)
		} else {
			t.byUnique[e.Unique] = e.UniqueNext
		}
	} else {
		for p := t.At(first); ; p = t.At(p.UniqueNext) {
			if p.UniqueNext == h {
				p.UniqueNext = e.UniqueNext
				break
			}
		}
	}
	e.Unique, e.UniqueNext = Digest{}, 0
}

// KeyHolders collects the jobs that hold a unique key, in no order.
func (t *Table) KeyHolders() (handles []uint32) {
	for _, h := range t.byUnique {
		for ; h != 0; h = t.At(h).UniqueNext {
			handles = append(handles, h)
		}
	}
	return handles
}

// LockCount is how many keys are held.
func (t *Table) LockCount() int { return len(t.byUnique) }

// Holders are the jobs that hold a key, in any queue.
func (t *Table) Holders(key Digest) (handles []uint32) {
	for h := t.byUnique[key]; h != 0; h = t.At(h).UniqueNext {
		handles = append(handles, h)
	}
	return handles
}

// LinkedJobs lists the numbers of the jobs with an Optional, in order.
func (t *Table) LinkedJobs() []uint64 {
	seqs := make([]uint64, 0, len(t.optionals))
	if len(t.optionals) < t.Live/16 {
		for h := range t.optionals {
			seqs = append(seqs, t.At(h).Seq)
		}
		slices.Sort(seqs)
		return seqs
	}
	walk := t.From(0, false)
	for h := walk.Next(); h != 0; h = walk.Next() {
		if e := t.At(h); e.Has(HasOptional) {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}
