package qless

import (
	"encoding/binary"
	"errors"
	"math"
)

// Documents are written as a version byte and fields in a fixed order: strings and lists with their lengths in front,
// numbers as the bits of a float.
const docVersion = 1

// errDocument is a document that cannot be read.
var errDocument = errors.New("a document is damaged or of a newer version")

type encoder struct{ b []byte }

func newEncoder() *encoder { return &encoder{b: []byte{docVersion}} }

func (e *encoder) num(f float64) { e.b = binary.LittleEndian.AppendUint64(e.b, math.Float64bits(f)) }
func (e *encoder) size(n int)    { e.b = binary.AppendUvarint(e.b, uint64(n)) } //nolint:gosec // a length

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

func (e *encoder) flag(is bool) {
	if is {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

// decoder reads what an encoder wrote. After the first error all fields are zero.
type decoder struct {
	b   []byte
	bad bool
}

func newDecoder(b []byte) *decoder {
	if len(b) == 0 || b[0] != docVersion {
		return &decoder{bad: true}
	}
	return &decoder{b: b[1:]}
}

func (d *decoder) take(n int) []byte {
	if d.bad || n > len(d.b) {
		d.bad = true
		return nil
	}
	taken := d.b[:n]
	d.b = d.b[n:]
	return taken
}

func (d *decoder) num() float64 {
	b := d.take(8)
	if b == nil {
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// size is a length, at most that of the rest.
func (d *decoder) size() int {
	n, w := binary.Uvarint(d.b)
	if d.bad || w <= 0 || n > uint64(len(d.b)) {
		d.bad = true
		return 0
	}
	d.b = d.b[w:]
	return int(n) //nolint:gosec // bounded above
}

func (d *decoder) text() string { return string(d.take(d.size())) }

func (d *decoder) list() []string {
	n := d.size()
	if n == 0 {
		return nil
	}
	all := make([]string, 0, n)
	for range n {
		all = append(all, d.text())
	}
	return all
}

func (d *decoder) flag() bool {
	b := d.take(1)
	return b != nil && b[0] != 0
}

func (d *decoder) close() error {
	if d.bad || len(d.b) > 0 {
		return errDocument
	}
	return nil
}

// encode is the document of a job.
func (j *job) encode() []byte {
	e := newEncoder()
	for _, s := range [...]string{j.klass, j.state, j.queue, j.worker, j.data, j.spawnedFrom, j.failedGroup} {
		e.text(s)
	}
	for _, f := range [...]float64{j.priority, j.expires, j.retries, j.remaining, j.time, j.due, j.completedAt, j.failedAt} {
		e.num(f)
	}
	for _, is := range [...]bool{j.unread, j.hasDue, j.grace, j.completed, j.foreign, j.broker.lent} {
		e.flag(is)
	}
	e.list(j.tags)
	e.list(j.dependents)
	e.list(j.dependencies)
	e.size(len(j.history))
	for i := range j.history {
		e.num(j.history[i].when)
		e.text(j.history[i].what)
		e.text(j.history[i].item)
	}
	e.flag(j.failure != nil)
	if f := j.failure; f != nil {
		e.text(f.group)
		e.text(f.message)
		e.text(f.worker)
		e.num(f.when)
	}
	for _, p := range j.places {
		e.flag(p.in)
		e.text(p.queue)
		e.num(p.score)
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

// decodeJob is the inverse of encode.
func decodeJob(jid string, b []byte) (*job, error) {
	d := newDecoder(b)
	j := &job{jid: jid, known: true}
	for _, s := range [...]*string{&j.klass, &j.state, &j.queue, &j.worker, &j.data, &j.spawnedFrom, &j.failedGroup} {
		*s = d.text()
	}
	for _, f := range [...]*float64{&j.priority, &j.expires, &j.retries, &j.remaining, &j.time, &j.due, &j.completedAt, &j.failedAt} {
		*f = d.num()
	}
	for _, is := range [...]*bool{&j.unread, &j.hasDue, &j.grace, &j.completed, &j.foreign, &j.broker.lent} {
		*is = d.flag()
	}
	j.tags, j.dependents, j.dependencies = d.list(), d.list(), d.list()
	for range d.size() {
		j.history = append(j.history, entry{when: d.num(), what: d.text(), item: d.text()})
	}
	if d.flag() {
		j.failure = &failure{group: d.text(), message: d.text(), worker: d.text(), when: d.num()}
	}
	for i := range j.places {
		j.places[i] = place{in: d.flag(), queue: d.text(), score: d.num()}
	}
	for range d.size() {
		j.holders = append(j.holders, holder{worker: d.text(), until: d.num()})
	}
	for range d.size() {
		j.tagged = append(j.tagged, tagTime{tag: d.text(), at: d.num()})
	}
	return j, d.close()
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
		*s = d.text()
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
			if n := d.histogram[i]; n != 0 {
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

// bucket is the number of a bucket.
func (d *decoder) bucket() int {
	n, w := binary.Uvarint(d.b)
	if d.bad || w <= 0 || n >= buckets {
		d.bad = true
		return 0
	}
	d.b = d.b[w:]
	return int(n) //nolint:gosec // bounded above
}
