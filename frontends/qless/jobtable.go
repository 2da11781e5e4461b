package qless

import (
	"maps"
	"slices"
	"strings"
	"unique"

	"broker/core"
)

// jobTable holds all jobs. A job that no command uses is packed: its document and its state in the broker are one
// string without pointers, so that a million jobs are little work for the garbage collector. A command opens the jobs
// that it uses, and unlock packs them again. Frontend.mu guards the table.
type jobTable struct {
	packed map[string]string
	open   map[string]*job
	jids   map[uint64]string // jids of the jobs in the broker, by Seq
}

func newJobTable() jobTable {
	return jobTable{packed: map[string]string{}, open: map[string]*job{}, jids: map[uint64]string{}}
}

// get returns a job; nil if it does not exist. Until pack, it always returns the same pointer.
func (t *jobTable) get(jid string) *job {
	if j, open := t.open[jid]; open {
		return j // nil if removed
	}
	p, there := t.packed[jid]
	if !there {
		return nil
	}
	j := unpack(jid, p)
	t.open[jid] = j
	return j
}

// has reports whether a job exists.
func (t *jobTable) has(jid string) bool {
	if j, open := t.open[jid]; open {
		return j != nil
	}
	_, there := t.packed[jid]
	return there
}

func (t *jobTable) put(j *job)        { t.open[j.jid] = j }
func (t *jobTable) remove(jid string) { t.open[jid] = nil }

// bySeq returns the job with a Seq of the broker.
func (t *jobTable) bySeq(seq uint64) *job {
	if jid, there := t.jids[seq]; there {
		return t.get(jid)
	}
	return nil
}

func (t *jobTable) hasSeq(seq uint64) bool {
	_, there := t.jids[seq]
	return there
}

// len is the number of jobs. No job may be open.
func (t *jobTable) len() int { return len(t.packed) }

// all lists the jids of the jobs. No job may be open.
func (t *jobTable) all() []string { return slices.Sorted(maps.Keys(t.packed)) }

// pack packs all open jobs.
func (t *jobTable) pack() {
	for jid, j := range t.open {
		switch {
		case j == nil:
			delete(t.packed, jid)
		case j.changed:
			j.changed = false
			t.packed[jid] = j.pack()
		}
	}
	if len(t.open) > 1000 { // clear would keep its memory
		t.open = map[string]*job{}
	}
	clear(t.open)
}

// A packed job that is not in the broker begins with two bytes: its Seq, which is zero, and whether it has a document.
// The document follows; its first byte is the state.
const unattached = 2

// load stores a document without opening the job.
func (t *jobTable) load(jid string, document []byte) (packed string) {
	e := encoder{make([]byte, 0, unattached+len(document))}
	e.uint(0)
	e.flags(true)
	packed = string(append(e.b, document[1:]...))
	t.packed[jid] = packed
	return packed
}

// attach adds the state in the broker to a packed job. It returns false if the state differs from the document, or if
// it would have to open the job to compare. The table keeps jid.
func (t *jobTable) attach(jid string, b *brokerJob) bool {
	p := t.packed[jid]
	if len(p) <= unattached || p[0] != 0 || b.leased {
		return false
	}
	state := states[p[unattached]]
	if state != b.state || state != waiting && state != failed {
		return false
	}
	e := encoder{make([]byte, 0, 64+len(p))}
	b.append(&e)
	t.packed[jid] = string(append(e.b, p[1:]...))
	t.jids[b.seq] = jid
	return true
}

// unattached lists the jobs that should be in the broker but are not.
func (t *jobTable) unattached() (jids []string) {
	for jid, p := range t.packed {
		if p[0] != 0 { // a Seq of the broker
			continue
		}
		if state := states[p[unattached]]; state != complete && state != failed {
			jids = append(jids, jid)
		}
	}
	slices.Sort(jids)
	return jids
}

// pack encodes a job for the table: its state in the broker, then the document.
func (j *job) pack() string {
	e := encoder{make([]byte, 0, 256+len(j.data))}
	j.broker.append(&e)
	e.flags(j.hasDocument)
	return string(j.appendDocument(e.b))
}

func (b *brokerJob) append(e *encoder) {
	e.uint(b.seq)
	if b.seq != 0 {
		e.byte(stateCode(b.state))
		e.flags(b.leased, b.foreignWorker)
		e.uint(uint64(b.readyAt))
		e.uint(uint64(b.epoch))
		e.num(float64(b.priority))
		e.text(b.queue)
		e.text(b.worker)
		e.list(b.after)
	}
}

func unpack(jid, packed string) *job {
	d := decoder{b: packed}
	j := &job{jid: jid}
	j.broker.read(&d)
	d.flags(&j.hasDocument)
	j.readDocument(&d)
	if d.close() != nil {
		panic("qless: a packed job cannot be read")
	}
	return j
}

func (b *brokerJob) read(d *decoder) {
	if b.seq = d.uint(); b.seq == 0 {
		return
	}
	b.state = d.state()
	d.flags(&b.leased, &b.foreignWorker)
	b.readyAt, b.epoch = core.Instant(d.uint()), uint32(d.uint())
	b.priority = int64(d.num())
	b.queue, b.worker, b.after = d.name(), d.name(), d.list()
}

// shared returns one shared copy of a string that occurs in many jobs.
func shared(s string) string {
	if s == "" {
		return ""
	}
	return unique.Make(s).Value()
}

// own copies a string that is part of a longer one, so that the longer one can be freed.
func own(s string) string { return strings.Clone(s) }
