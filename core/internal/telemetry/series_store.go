package telemetry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"broker/core"
)

// Blocks of series are stored as meta entries, one for each place in a ring, so a new block overwrites the entry of the
// block it replaces:
//
//	core/series/STEP/PLACE/all   .../rest   .../q/QUEUE
//	uvarint number, then for each point 0 if nothing happened, else 1 and its fields as uvarints
//
// They are written every ten minutes, together with a commit of other changes, and at shutdown.

const (
	// SeriesPrefix is the prefix of the names of the meta entries of series. It is on disk and never changes.
	SeriesPrefix = "core/series/"

	saveEvery  = 10 * time.Minute
	saveAtOnce = 16 // meters with one commit
)

// saving is the progress of the current round of writing.
type saving struct {
	due core.Instant // of the next round
	at  int          // next meter of the current round; beyond the last meter, the round has ended
}

// nextRound returns the state for a round that starts after saveEvery.
func nextRound(now core.Instant) saving { return saving{due: now.Add(saveEvery), at: math.MaxInt32} }

// savedBlocks has a bit for every place of a ring that is stored.
type savedBlocks [len(core.Steps)]uint32

// meterAt returns a meter by its number, from 0: all, the rest, then the meters of queues. nil: there are no more.
func (x *Meters) meterAt(i int) *Meter {
	switch i {
	case 0:
		return x.all
	case 1:
		return x.rest
	}
	if i -= 2; i < len(x.list) {
		return x.list[i]
	}
	return nil
}

// metaKey is the last part of the names of a meter's entries.
func (x *Meters) metaKey(mt *Meter) string {
	switch mt {
	case x.all:
		return "all"
	case x.rest:
		return "rest"
	}
	return "q/" + mt.name
}

func seriesName(s core.Step, slot int, key string) string {
	return fmt.Sprintf("%s%d/%02d/%s", SeriesPrefix, s, slot, key)
}

// Seal adds the next entries of the current round, if a round is due or running.
func (x *Meters) Seal(now core.Instant, into []core.MetaEntry) []core.MetaEntry {
	if now >= x.saving.due {
		x.saving = saving{due: now.Add(saveEvery)}
	}
	for range saveAtOnce {
		mt := x.meterAt(x.saving.at)
		if mt == nil {
			break
		}
		into = x.saveMeter(mt, into)
		x.saving.at++
	}
	return into
}

// SaveAll adds the entries of all blocks that are not stored yet.
func (x *Meters) SaveAll(into []core.MetaEntry) []core.MetaEntry {
	x.EndStep(x.ends) // writes the current step as if it had ended
	for i := 0; x.meterAt(i) != nil; i++ {
		into = x.saveMeter(x.meterAt(i), into)
	}
	return into
}

// saveMeter adds the blocks that differ from the stored ones. The current minute and hour are written with their counts
// so far.
func (x *Meters) saveMeter(mt *Meter, into []core.MetaEntry) []core.MetaEntry {
	key := x.metaKey(mt)
	for i, s := range core.Steps {
		l := &mt.levels[i]
		if now := x.step / int64(s.Span()/core.Step2s.Span()); s != core.Step2s && l.dirty {
			l.closeStep(s, now, &mt.gauges)
			l.ring.next = now
		}
		for slot, b := range l.ring.blocks {
			if b == nil || !b.dirty {
				continue
			}
			b.dirty = false
			mt.saved[i] |= 1 << slot
			into = append(into, core.MetaEntry{Name: seriesName(s, slot, key), Value: b.encode()})
		}
	}
	return into
}

// forgetSeries removes the stored entries of a meter.
func (x *Meters) forgetSeries(mt *Meter) {
	key := x.metaKey(mt)
	for i, s := range core.Steps {
		for slot := range mt.levels[i].ring.blocks {
			if mt.saved[i]&(1<<slot) != 0 {
				x.host.RemoveMeta(seriesName(s, slot, key))
			}
		}
	}
}

// expireSeries removes blocks that are too old to be shown. It removes the meter of a removed queue once it has no data
// left. now is a step of two seconds.
func (x *Meters) expireSeries(now int64) {
	var gone []string
	for i := 0; x.meterAt(i) != nil; i++ {
		mt := x.meterAt(i)
		left := x.expireBlocks(mt, now)
		if mt.name != "" && x.host.Queue(mt.name) == nil && !left {
			gone = append(gone, mt.name)
		}
	}
	for _, name := range gone {
		x.Drop(name)
	}
}

// expireBlocks removes the old blocks of a meter and reports whether any data is left.
func (x *Meters) expireBlocks(mt *Meter, now int64) (left bool) {
	key := x.metaKey(mt)
	for i, s := range core.Steps {
		r := &mt.levels[i].ring
		// number of the first block that is shown
		first := now/int64(s.Span()/core.Step2s.Span())/blockPoints - int64(len(r.blocks)) + 1
		for slot, b := range r.blocks {
			switch {
			case b == nil:
				continue
			case b.number >= first:
				left = true
				continue
			}
			r.blocks[slot] = nil
			if mt.saved[i]&(1<<slot) != 0 {
				mt.saved[i] &^= 1 << slot
				x.host.RemoveMeta(seriesName(s, slot, key))
			}
		}
		left = left || mt.levels[i].dirty
	}
	return left
}

// fields returns the fields of a point, in the order in which they are stored.
func (p *point) fields() (counts [5]*uint32, spans [7]*uint16) {
	return [...]*uint32{&p.submitted, &p.done, &p.failed, &p.ready, &p.leased},
		[...]*uint16{&p.oldest, &p.wait[0], &p.wait[1], &p.wait[2], &p.run[0], &p.run[1], &p.run[2]}
}

func (b *block) encode() []byte {
	v := binary.AppendUvarint(nil, uint64(b.number))
	for i := range b.points {
		p := &b.points[i]
		if *p == (point{}) {
			v = append(v, 0)
			continue
		}
		v = append(v, 1)
		counts, spans := p.fields()
		for _, n := range counts {
			v = binary.AppendUvarint(v, uint64(*n))
		}
		for _, n := range spans {
			v = binary.AppendUvarint(v, uint64(*n))
		}
	}
	return v
}

// varints reads numbers off the front of a stored value.
type varints struct {
	b   []byte
	bad bool
}

func (r *varints) next() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

var errBlock = errors.New("not a block of a series")

func decodeBlock(v []byte) (*block, error) {
	r := varints{b: v}
	b := &block{number: int64(r.next() & (1<<62 - 1))}
	for i := range b.points {
		if r.next() == 0 {
			continue
		}
		counts, spans := b.points[i].fields()
		for _, n := range counts {
			*n = uint32(r.next())
		}
		for _, n := range spans {
			*n = uint16(r.next())
		}
	}
	if r.bad || len(r.b) > 0 {
		return nil, errBlock
	}
	return b, nil
}

// Restore restores a stored block. It ignores a block that is too old.
func (x *Meters) Restore(now core.Instant, name string, value []byte) error {
	step, rest, _ := strings.Cut(strings.TrimPrefix(name, SeriesPrefix), "/")
	place, key, ok := strings.Cut(rest, "/")
	n, err := strconv.Atoi(step)
	slot, err2 := strconv.Atoi(place)
	if !ok || err != nil || err2 != nil || n < 0 || n >= len(core.Steps) || slot < 0 ||
		slot >= core.Steps[n].Points()/blockPoints {
		return errBlock
	}
	b, err := decodeBlock(value)
	if err != nil {
		return err
	}
	mt := x.restoreMeter(key)
	if mt == nil {
		return nil
	}
	mt.saved[n] |= 1 << slot
	l := &mt.levels[n]
	if l.ring.slot(b.number*blockPoints) != slot {
		return errBlock
	}
	l.ring.blocks[slot] = b
	if at := stepAt(core.Steps[n], now); n > 0 && at/blockPoints == b.number { // the current minute or hour continues
		p := &b.points[at%blockPoints]
		l.submitted, l.done, l.failed = p.submitted, p.done, p.failed
		x.markLevel(mt, core.Steps[n])
	}
	return nil
}

// restoreMeter returns the meter for a stored entry; nil: there are enough meters.
func (x *Meters) restoreMeter(key string) *Meter {
	switch key {
	case "all":
		return x.all
	case "rest":
		return x.rest
	}
	name := strings.TrimPrefix(key, "q/")
	mt := x.named[name]
	if mt == nil && len(x.list) < x.limit && name != "" {
		mt = newMeter(name, x.step)
		x.named[name] = mt
		x.list = append(x.list, mt)
		if q := x.host.Queue(name); q != nil {
			q.meter = mt
		}
	}
	return mt
}
