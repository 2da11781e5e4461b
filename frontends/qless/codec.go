package qless

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
)

// A document is a version byte and fields in a fixed order. Strings and lists start with their length. A number is the
// bits of a float in an order that puts sign and exponent last, so that zero and small whole numbers take one or two
// bytes.
const docVersion = 2

// errDocument means that a document cannot be read.
var errDocument = errors.New("a document is damaged or of another version")

type encoder struct{ b []byte }

func newEncoder() *encoder { return &encoder{b: []byte{docVersion}} }

func (e *encoder) uint(n uint64) { e.b = binary.AppendUvarint(e.b, n) }
func (e *encoder) byte(b byte)   { e.b = append(e.b, b) }
func (e *encoder) num(f float64) { e.uint(bits.ReverseBytes64(math.Float64bits(f))) }
func (e *encoder) size(n int)    { e.uint(uint64(n)) }

func (e *encoder) text(s string) {
	e.size(len(s))
	e.b = append(e.b, s...)
}

func (e *encoder) list(all []string) {
	e.size(len(all))
	for _, s := range all {
		e.text(s)
	}
}

// flags writes up to eight flags.
func (e *encoder) flags(all ...bool) {
	var b byte
	for i, is := range all {
		if is {
			b |= 1 << i
		}
	}
	e.byte(b)
}

// decoder reads the output of an encoder. Its texts are parts of the input string. After the first error all fields are
// zero.
type decoder struct {
	b   string
	bad bool
}

// readable reports whether a document has the version that this code writes.
func readable(b []byte) bool { return len(b) > 0 && b[0] == docVersion }

func newDecoder(b []byte) *decoder {
	if !readable(b) {
		return &decoder{bad: true}
	}
	return &decoder{b: string(b[1:])}
}

func (d *decoder) take(n int) string {
	if d.bad || n > len(d.b) {
		d.bad = true
		return ""
	}
	taken := d.b[:n]
	d.b = d.b[n:]
	return taken
}

func (d *decoder) uint() uint64 {
	var n uint64
	for i := 0; !d.bad && i < len(d.b) && i < binary.MaxVarintLen64; i++ {
		c := d.b[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			d.b = d.b[i+1:]
			return n
		}
	}
	d.bad = true
	return 0
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != "" {
		return b[0]
	}
	return 0
}

func (d *decoder) num() float64 { return math.Float64frombits(bits.ReverseBytes64(d.uint())) }

// size reads a length, which is at most the length of the rest.
func (d *decoder) size() int {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.bad = true
		return 0
	}
	return int(n)
}

func (d *decoder) text() string { return d.take(d.size()) }

// name reads a text that many jobs share.
func (d *decoder) name() string { return shared(d.text()) }

func (d *decoder) list() []string {
	n := d.size()
	if n == 0 {
		return nil
	}
	all := make([]string, 0, n)
	for range n {
		all = append(all, own(d.text()))
	}
	return all
}

func (d *decoder) flags(all ...*bool) {
	b := d.byte()
	for i, to := range all {
		*to = b&(1<<i) != 0
	}
}

func (d *decoder) close() error {
	if d.bad || d.b != "" {
		return errDocument
	}
	return nil
}

// states by their codes, which are stored on disk.
var states = [...]string{"", waiting, scheduled, depends, running, stalled, failed, complete}

func stateCode(state string) byte { return byte(slices.Index(states[:], state)) }

func (d *decoder) state() string {
	if i := int(d.byte()); i < len(states) {
		return states[i]
	}
	d.bad = true
	return ""
}

// encode returns the document of a job.
func (j *job) encode() []byte { return j.appendDocument([]byte{docVersion}) }

func (j *job) appendDocument(b []byte) []byte {
	e := encoder{b}
	e.byte(stateCode(j.state))
	for _, s := range [...]string{j.klass, j.queue, j.worker, j.data, j.spawnedFrom, j.failedGroup} {
		e.text(s)
	}
	for _, f := range [...]float64{
		j.priority, j.expires, j.retries, j.remaining, j.time, j.due, j.completedAt, j.failedAt,
	} {
		e.num(f)
	}
	e.flags(j.unread, j.hasDue, j.grace, j.completed, j.foreign, j.broker.foreignWorker, j.failure != nil)
	e.list(j.tags)
	e.list(j.dependents)
	e.list(j.dependencies)
	e.size(len(j.history))
	for i := range j.history {
		e.num(j.history[i].when)
		e.text(j.history[i].what)
		e.text(j.history[i].item)
	}
	if f := j.failure; f != nil {
		e.text(f.group)
		e.text(f.message)
		e.text(f.worker)
		e.num(f.when)
	}
	e.flags(j.places[waitingSet].in, j.places[lockSet].in, j.places[scheduledSet].in, j.places[dependsSet].in)
	for _, p := range j.places {
		if p.in {
			e.text(p.queue)
			e.num(p.score)
		}
	}
	e.size(len(j.holders))
	for _, h := range j.holders {
		e.text(h.worker)
		e.num(h.until)
	}
	e.size(len(j.tagged))
	for _, g := range j.tagged {
		e.text(g.tag)
		e.num(g.at)
	}
	return e.b
}

// readDocument is the inverse of appendDocument.
func (j *job) readDocument(d *decoder) {
	j.state = d.state()
	j.klass, j.queue, j.worker, j.data, j.spawnedFrom, j.failedGroup = d.name(), d.name(), d.name(), d.text(), own(
		d.text(),
	), own(d.text())
	for _, f := range [...]*float64{
		&j.priority, &j.expires, &j.retries, &j.remaining, &j.time, &j.due, &j.completedAt, &j.failedAt,
	} {
		*f = d.num()
	}
	hasFailure := false
	d.flags(&j.unread, &j.hasDue, &j.grace, &j.completed, &j.foreign, &j.broker.foreignWorker, &hasFailure)
	j.tags, j.dependents, j.dependencies = d.list(), d.list(), d.list()
	for range d.size() {
		j.history = append(j.history, entry{when: d.num(), what: d.text(), item: d.text()})
	}
	if hasFailure {
		j.failure = &failure{group: d.text(), message: d.text(), worker: d.text(), when: d.num()}
	}
	d.flags(&j.places[waitingSet].in, &j.places[lockSet].in, &j.places[scheduledSet].in, &j.places[dependsSet].in)
	for i := range j.places {
		if p := &j.places[i]; p.in {
			p.queue, p.score = d.name(), d.num()
		}
	}
	for range d.size() {
		j.holders = append(j.holders, holder{worker: d.name(), until: d.num()})
	}
	for range d.size() {
		j.tagged = append(j.tagged, tagTime{tag: d.name(), at: d.num()})
	}
}

func (r *recurringJob) encode() []byte {
	e := newEncoder()
	for _, s := range [...]string{r.klass, r.queue, r.data} {
		e.text(s)
	}
	for _, f := range [...]float64{r.priority, r.interval, r.retries, r.count, r.backlog, r.next} {
		e.num(f)
	}
	e.list(r.tags)
	return e.b
}

func decodeRecurring(jid string, b []byte) (*recurringJob, error) {
	d := newDecoder(b)
	r := &recurringJob{jid: jid}
	for _, s := range [...]*string{&r.klass, &r.queue, &r.data} {
		*s = own(d.text())
	}
	for _, f := range [...]*float64{&r.priority, &r.interval, &r.retries, &r.count, &r.backlog, &r.next} {
		*f = d.num()
	}
	r.tags = d.list()
	return r, d.close()
}

func (s *statistics) encode() []byte {
	e := newEncoder()
	e.num(s.retries)
	e.num(s.failed)
	e.num(s.failures)
	for _, d := range [...]*distribution{&s.wait, &s.run} {
		e.num(d.count)
		e.num(d.mean)
		e.num(d.vk)
		e.size(len(d.histogram))
		for i := range buckets {
			if n, ok := d.histogram[i]; ok {
				e.size(i)
				e.num(n)
			}
		}
	}
	return e.b
}

func decodeStatistics(b []byte) (*statistics, error) {
	d := newDecoder(b)
	s := &statistics{retries: d.num(), failed: d.num(), failures: d.num()}
	for _, to := range [...]*distribution{&s.wait, &s.run} {
		to.count, to.mean, to.vk = d.num(), d.num(), d.num()
		to.histogram = map[int]float64{}
		for range d.size() {
			i := d.bucket()
			to.histogram[i] = d.num()
		}
	}
	return s, d.close()
}

// bucket reads the number of a bucket.
func (d *decoder) bucket() int {
	n := d.uint()
	if n >= buckets {
		d.bad = true
		return 0
	}
	return int(n)
}
