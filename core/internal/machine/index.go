package machine

import (
	"hash/maphash"

	"broker/core"
)

// digest represents a text in an index: 128 bits with a random seed of this process, so that clients cannot construct collisions
// and accidental ones are practically impossible. It never leaves the process.
type digest [2]uint64

type hasher struct{ a, b maphash.Seed }

func newHasher() hasher { return hasher{a: maphash.MakeSeed(), b: maphash.MakeSeed()} }

func (h hasher) text(s string) digest {
	d := digest{maphash.String(h.a, s), maphash.String(h.b, s)}
	if d == (digest{}) {
		d[0] = 1 // zero means "none"
	}
	return d
}

// find returns the handle of the job that ref names, or zero.
func (m *Machine) find(ref core.Ref) uint32 {
	if ref.Seq != 0 {
		return m.bySeq.get(ref.Seq)
	}
	if h := m.byID[m.hash.text(ref.ID)]; h != 0 {
		return h
	}
	if seq, milli, ok := core.ParseMintedID(ref.ID); ok {
		if h := m.bySeq.get(seq); h != 0 && m.jobs.at(h).id == (digest{}) && int64(m.jobs.at(h).createdAt/1000) == milli {
			return h
		}
	}
	if seq, ok := core.ParseAlias(ref.ID); ok {
		if h := m.bySeq.get(seq); h != 0 && !m.jobs.at(h).has(idIsUUIDv4) {
			return h
		}
	}
	return 0
}

// findUnique returns the unfinished job that holds a key in a queue (in any if queue is zero).
func (m *Machine) findUnique(queue uint32, key string) uint32 {
	return m.findLock(queue, m.hash.text(key))
}

func (m *Machine) findLock(queue uint32, key digest) uint32 {
	h := m.byUnique[key]
	for h != 0 {
		e := m.jobs.at(h)
		if queue == 0 || e.queue == queue {
			return h
		}
		h = e.uniqueNext
	}
	return 0
}

func (m *Machine) lockUnique(h uint32, key string) { m.lockDigest(h, m.hash.text(key)) }

func (m *Machine) lockDigest(h uint32, key digest) {
	e := m.jobs.at(h)
	e.unique = key
	e.uniqueNext = m.byUnique[e.unique]
	m.byUnique[e.unique] = h
}

// freeUnique frees the key of a job; it does nothing if the key is free.
func (m *Machine) freeUnique(h uint32, e *entry) {
	if e.unique != (digest{}) {
		m.dropUnique(h, e)
	}
}

func (m *Machine) dropUnique(h uint32, e *entry) {
	if first := m.byUnique[e.unique]; first == h {
		if e.uniqueNext == 0 {
			delete(m.byUnique, e.unique)
		} else {
			m.byUnique[e.unique] = e.uniqueNext
		}
	} else {
		for p := m.jobs.at(first); ; p = m.jobs.at(p.uniqueNext) {
			if p.uniqueNext == h {
				p.uniqueNext = e.uniqueNext
				break
			}
		}
	}
	e.unique, e.uniqueNext = digest{}, 0
}
