package telemetry

import (
	"encoding/binary"
	"errors"

	"broker/core"
)

// Counters lists the fields of t in the order of the stored form. A new field is added at the end of Totals.each
// instead.
func Counters(t *core.Totals) [8]*uint64 {
	return [...]*uint64{&t.Submitted, &t.Leased, &t.Done, &t.Failed, &t.Dead, &t.Expired, &t.Cancelled, &t.Released}
}

// Totals is the stored form of the counters.
type Totals struct {
	Totals   core.Totals
	ByOrigin [len(core.Protocols)]core.Totals
	ByWorker [len(core.Protocols)]core.Totals
}

// each calls fn for every counter in the order of the stored form. A store without the last counters leaves them at
// zero.
func (t *Totals) each(fn func(*uint64)) {
	group := func(x *core.Totals) {
		for _, n := range Counters(x) {
			fn(n)
		}
	}
	group(&t.Totals)
	for i := range t.ByOrigin {
		group(&t.ByOrigin[i])
		group(&t.ByWorker[i])
	}
}

// totalsBytes is enough for the counters of a broker with some millions of jobs.
const totalsBytes = 512

// Encode encodes the counters as varints. It runs with every commit, where encoding/json would be noticeably slow.
func (t *Totals) Encode() []byte {
	b := make([]byte, 0, totalsBytes) // without a capacity, it would grow at each commit
	t.each(func(n *uint64) { b = binary.AppendUvarint(b, *n) })
	return b
}

// Decode is the inverse of Encode.
func (t *Totals) Decode(b []byte) error {
	bad := false
	t.each(func(n *uint64) {
		v, used := binary.Uvarint(b)
		bad = bad || used < 0 || used == 0 && len(b) > 0
		*n, b = v, b[max(used, 0):]
	})
	if bad {
		return errors.New("not a row of counters")
	}
	return nil
}
