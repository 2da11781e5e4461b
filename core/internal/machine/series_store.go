package machine

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

// Blocks of series are stored as meta entries, one for each place in a ring, so that a block takes the entry of the one
// that it replaces:
//
//	core/series/STEP/PLACE/all   .../rest   .../q/QUEUE
//	uvarint number, then for each point 0 if nothing happened, else 1 and its fields as uvarints
//
// They are written with a commit that something else has caused, every ten minutes and at an orderly end.

const (
	seriesMeta = "core/series/"
	saveEvery  = 10 * time.Minute
	saveAtOnce = 16 // meters with one commit
)

// saving is where the present round of writing is.
type saving struct {
	due core.Instant // of the next round
	at  int          // next meter of the present round; beyond the last one: it is over
}

// nextRound starts a round a while from now.
func nextRound(now core.Instant) saving { return saving{due: now.Add(saveEvery), at: math.MaxInt32} }

// savedBlocks has a bit for every place of a ring that is stored.
type savedBlocks [len(core.Steps)]uint32

// meterAt numbers the meters, from 0: all, the rest, then those of queues. Nil: there are no more.
func (x *measures) meterAt(i int) *meter {
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
func (x *measures) metaKey(mt *meter) string {
	switch mt {
	case x.all:
		return "all"
	case x.rest:
		return "rest"
	}
	return "q/" + mt.name
}

func seriesName(s core.Step, slot int, key string) string {
	return fmt.Sprintf("%s%d/%02d/%s", seriesMeta, s, slot, key)
}

// sealSeries adds the next entries of the present round, if one is due or under way.
func (m *Machine) sealSeries(into []core.MetaEntry) []core.MetaEntry {
	x := &m.measures
	if m.now >= x.saving.due {
		x.saving = saving{due: m.now.Add(saveEvery)}
	}
	for range saveAtOnce {
		mt := x.meterAt(x.saving.at)
		if mt == nil {
			break
		}
		into = m.saveMeter(mt, into)
		x.saving.at++
	}
	return into
}

// saveAll adds the entries of everything that is not stored yet.
func (m *Machine) saveAll(into []core.MetaEntry) []core.MetaEntry {
	m.endStep(m.measures.ends) // the present step is written as if it were over
	for i := 0; m.measures.meterAt(i) != nil; i++ {
		into = m.saveMeter(m.measures.meterAt(i), into)
	}
	return into
}

// saveMeter adds the blocks that differ from what is stored. The present minute and hour are written as far as they have
// come.
func (m *Machine) saveMeter(mt *meter, into []core.MetaEntry) []core.MetaEntry {
	x := &m.measures
	key := x.metaKey(mt)
	for i, s := range core.Steps {
		l := &mt.levels[i]
		if now := x.step / int64(s.Span()/core.Step2s.Span()); s != core.Step2s && l.dirty {
			l.closeStep(s, now, &mt.was)
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

// forgetSeries removes what is stored of a meter.
func (m *Machine) forgetSeries(mt *meter) {
	key := m.measures.metaKey(mt)
	for i, s := range core.Steps {
		for slot := range mt.levels[i].ring.blocks {
			if mt.saved[i]&(1<<slot) != 0 {
				m.metaLog = append(m.metaLog, core.MetaEntry{Name: seriesName(s, slot, key)})
			}
		}
	}
}

// expireSeries removes blocks that are too old to be shown, and the meters of queues that are gone once nothing is left of
// them. now is a step of two seconds.
func (m *Machine) expireSeries(now int64) {
	x := &m.measures
	var gone []string
	for i := 0; x.meterAt(i) != nil; i++ {
		mt := x.meterAt(i)
		left := m.expireBlocks(mt, now)
		if mt.name != "" && m.names[mt.name] == 0 && !left {
			gone = append(gone, mt.name)
		}
	}
	for _, name := range gone {
		m.dropMeter(name)
	}
}

// expireBlocks removes the old blocks of a meter and reports whether any data is left.
func (m *Machine) expireBlocks(mt *meter, now int64) (left bool) {
	key := m.measures.metaKey(mt)
	for i, s := range core.Steps {
		r := &mt.levels[i].ring
		first := now/int64(s.Span()/core.Step2s.Span())/blockPoints - int64(len(r.blocks)) + 1 // number of the first block that is shown
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
				m.metaLog = append(m.metaLog, core.MetaEntry{Name: seriesName(s, slot, key)})
			}
		}
		left = left || mt.levels[i].dirty
	}
	return left
}

// fields are those of a point, in the order in which they are stored.
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

var errBlock = errors.New("not a block of a series")

func decodeBlock(v []byte) (*block, error) {
	r := cursorReader{b: v}
	b := &block{number: int64(r.uvarint() & (1<<62 - 1))}
	for i := range b.points {
		if r.uvarint() == 0 {
			continue
		}
		counts, spans := b.points[i].fields()
		for _, n := range counts {
			*n = uint32(r.uvarint())
		}
		for _, n := range spans {
			*n = uint16(r.uvarint())
		}
	}
	if r.bad || len(r.b) > 0 {
		return nil, errBlock
	}
	return b, nil
}

// restoreSeries takes back a stored block; one that is too old to be kept is passed over.
func (m *Machine) restoreSeries(name string, value []byte) error {
	step, rest, _ := strings.Cut(strings.TrimPrefix(name, seriesMeta), "/")
	place, key, ok := strings.Cut(rest, "/")
	n, err := strconv.Atoi(step)
	slot, err2 := strconv.Atoi(place)
	if !ok || err != nil || err2 != nil || n < 0 || n >= len(core.Steps) || slot < 0 || slot >= core.Steps[n].Points()/blockPoints {
		return errBlock
	}
	b, err := decodeBlock(value)
	if err != nil {
		return err
	}
	mt := m.restoreMeter(key)
	if mt == nil {
		return nil
	}
	mt.saved[n] |= 1 << slot
	l := &mt.levels[n]
	if l.ring.slot(b.number*blockPoints) != slot {
		return errBlock
	}
	l.ring.blocks[slot] = b
	if now := stepAt(core.Steps[n], m.now); n > 0 && now/blockPoints == b.number { // the present one goes on
		p := &b.points[now%blockPoints]
		l.submitted, l.done, l.failed = p.submitted, p.done, p.failed
		m.measures.markLevel(mt, core.Steps[n])
	}
	return nil
}

// restoreMeter is the meter of a stored entry; nil: there are enough.
func (m *Machine) restoreMeter(key string) *meter {
	x := &m.measures
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
		if n := m.names[name]; n != 0 {
			m.queues[n].meter = mt
		}
	}
	return mt
}
