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
	Damage []string // missing or damaged data
}

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
	for _, t := range all {
		if err := c.timeline(t); err != nil {
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
}

// timeline checks a timeline. After a gap, it continues with the next base copy.
func (c *checker) timeline(t *timeline) error {
	whole, err := c.bases(t)
	if err != nil {
		return err
	}
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
		for i++; i < len(whole) && whole[i].number <= w.last.Number; i++ {
			r.Bases++
		}
		r.Entries, r.To = w.entries, max(r.To, w.last.At)
		c.report.Ranges = append(c.report.Ranges, r)
		c.report.Damage = append(c.report.Damage, w.notes...)
	}
	return nil
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
