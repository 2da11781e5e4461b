package archive

import (
	"context"
	"errors"
	"fmt"

	"broker/core"
	"broker/core/internal/record"
)

// Report lists the contents of an archive and the problems found in it.
type Report struct {
	Bytes  uint64
	Ranges []Range  // points in time that can be restored, in order
	Gaps   []Gap    // between them, in order
	Damage []string // missing or damaged data
}

// Gap is a time of which no state can be restored: the archive lacks the commits after From up to To. A broker that
// crashes before it has shipped its last commits leaves one; so do removed files.
type Gap struct{ From, To core.Instant }

// Range is a part of an archive without a gap.
type Range struct {
	Timeline string       // its folder
	From, To core.Instant // times of the first state that can be restored and of the last entry
	Bases    int          // intact base copies
	Entries  uint64       // after the first base copy
}

// Check reads all files of an archive. progress may be nil; it is called from time to time with the number of entries
// read.
func Check(ctx context.Context, dir string, progress func(entries uint64)) (*Report, error) {
	all, err := timelines(dir)
	if err != nil {
		return nil, err
	}
	c := checker{ctx: ctx, progress: progress, report: &Report{Bytes: totalBytes(all)}}
	for i, t := range all {
		if err := c.timeline(t, i+1 == len(all)); err != nil {
			return nil, err
		}
	}
	return c.report, nil
}

// checker collects a Report.
type checker struct {
	ctx      context.Context
	progress func(uint64)
	report   *Report
	entries  uint64
	last     uint64 // number of the last entry of the last range
}

// timeline checks a timeline. After a gap, it continues with the next base copy.
func (c *checker) timeline(t *timeline, newest bool) error {
	whole, err := c.bases(t)
	if err != nil {
		return err
	}
	c.orphans(t, whole, newest)
	for i := 0; i < len(whole); {
		b := whole[i]
		r := Range{Timeline: t.dir, From: b.at, To: b.at, Bases: 1}
		if i == 0 {
			r.From = max(t.began, b.at)
			r.To = r.From
		}
		w := walk{t: t, until: endOfTime}
		if err := w.run(c.ctx, b.number, c.entry); err != nil {
			return err
		}
		inside := i > 0
		for i++; i < len(whole) && whole[i].number <= w.last.Number; i++ {
			r.Bases++
		}
		r.Entries, r.To = w.entries, max(r.To, w.last.At)
		c.gap(&r, b.number, inside)
		c.last = max(w.last.Number, b.number)
		c.report.Ranges = append(c.report.Ranges, r)
		c.report.Damage = append(c.report.Damage, w.notes...)
	}
	return nil
}

// gap records a gap before a range that begins with the base copy after entry number. Inside a timeline, only damage
// or removed files make one.
func (c *checker) gap(r *Range, number uint64, inside bool) {
	if len(c.report.Ranges) == 0 || number <= c.last {
		return
	}
	before := c.report.Ranges[len(c.report.Ranges)-1].To
	c.report.Gaps = append(c.report.Gaps, Gap{From: before, To: r.From})
	if inside {
		c.report.Damage = append(c.report.Damage,
			fmt.Sprintf("%s: the entries between %d and %d are missing", r.Timeline, c.last+1, number))
	}
}

// orphans finds the segments of a timeline that follow no intact base copy. The newest timeline may be without its
// first copy for a while.
func (c *checker) orphans(t *timeline, whole []base, newest bool) {
	n := len(t.segs)
	if len(whole) > 0 {
		n = t.from(whole[0].number)
	} else if newest && len(t.bases) == 0 {
		n = 0
	}
	for _, g := range t.segs[:n] {
		c.report.Damage = append(c.report.Damage,
			g.path+": the base copy before it is missing, so its entries cannot be restored")
	}
}

// bases verifies the base copies of a timeline and returns the intact ones.
func (c *checker) bases(t *timeline) ([]base, error) {
	var whole []base
	for _, b := range t.bases {
		err := readBase(c.ctx, b.path, "")
		switch {
		case err == nil:
			whole = append(whole, b)
		case errors.Is(err, errBase):
			c.report.Damage = append(c.report.Damage, err.Error())
		default:
			return nil, fmt.Errorf("read base copy: %w", err)
		}
	}
	return whole, nil
}

func (c *checker) entry(*record.Entry) error {
	if c.entries++; c.entries%1024 == 0 && c.progress != nil {
		c.progress(c.entries)
	}
	return nil
}
