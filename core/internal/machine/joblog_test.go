package machine_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"broker/core"
	"broker/core/coretest"
)

// lines are those of an option, with | between; times=N repeats them with their numbers.
func (r *reader) lines() (lines []string) {
	lines = strings.Split(r.Option("lines"), "|")
	if n := int(r.number("times")); n > 0 {
		text := lines[0]
		lines = nil
		for i := range n {
			lines = append(lines, fmt.Sprint(text, " ", i+1))
		}
	}
	return lines
}

// showLog shows what the store has of a log: show-log SEQ [after=N].
func (p *player) showLog(c *coretest.Command) error {
	seq, err := strconv.ParseUint(c.Word(1), 10, 64)
	if err != nil {
		return err
	}
	chunks, err := core.DecodeLog(p.store.logOf(seq))
	if err != nil {
		return err
	}
	after, _ := strconv.ParseUint(c.Option("after"), 10, 32) // zero without it
	lines := core.LogLines(chunks, uint32(after))
	for i, l := range lines {
		if i < 4 || i >= len(lines)-3 || l.Missing > 0 || i > 0 && lines[i-1].Missing > 0 {
			p.say("%d %s %s", l.Number, p.at(l.At), core.CutText(l.Text, 60))
		} else if i == 4 {
			p.say("...")
		}
	}
	p.say("%d lines in %d chunks", len(lines), len(chunks))
	return nil
}

// A log stays within its limits. It keeps its first and last lines, and the number of missing lines.
func TestLogsAreBounded(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{
		"empty lines": 0, "short lines": 20, "long lines": 700, "lines that are cut": 100_000,
	} {
		p := newPlayer()
		worker := p.m.OpenClient(0, core.ClientOptions{Protocol: core.HTTP})
		do := func(op core.Op) core.Reply {
			p.store.apply(p.m, p.clk.Now(), worker, op)
			replies, _ := p.store.take(p.m, worker)
			return replies[len(replies)-1]
		}
		do(&core.Submit{Tag: 1, Job: &core.Job{Queue: "q"}})
		do(&core.Lease{Tag: 2, Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"})
		text := strings.Repeat("x", size)
		total := 0
		for _, n := range []int{1, 49, 1, 1000, 300, 1, 7, 1000} {
			lines := make([]string, n)
			for i := range lines {
				total++
				lines[i] = fmt.Sprint(total, text)
			}
			if r := do(&core.AppendLog{
				Tag: 3, Ref: core.Ref{Seq: 1}, Authority: core.ByLeased, Lines: lines,
			}); r.Kind != core.Accepted {
				t.Fatalf("%s: %v", name, r.Err)
			}
			if _, err := p.commit(); err != nil {
				t.Fatal(err)
			}
			checkLog(t, name, p.store.logOf(1), total)
		}
	}
}

// checkLog checks a log of so many lines, each of which begins with its number.
func checkLog(t *testing.T, name string, documents []core.MetaEntry, total int) {
	t.Helper()
	chunks, err := core.DecodeLog(documents)
	if err != nil {
		t.Fatal(err)
	}
	bytes, kept, next, gaps := 0, 0, uint32(1), 0
	for _, l := range core.LogLines(chunks, 0) {
		if l.Missing > 0 {
			gaps++
			next += l.Missing
			if l.Number != next-1 {
				t.Errorf("%s: line %d stands for %d lines up to %d", name, l.Number, l.Missing, next-1)
			}
			continue
		}
		if l.Number != next || !strings.HasPrefix(l.Text, fmt.Sprint(next)) {
			t.Fatalf("%s: line %d is %.20q, want line %d", name, l.Number, l.Text, next)
		}
		next++
		kept++
		bytes += len(l.Text)
	}
	if int(next) != total+1 || kept > core.MaxLogLines || bytes > core.MaxLogBytes || gaps > 1 ||
		len(chunks) > core.LogChunks {
		t.Errorf("%s: %d lines of %d kept with %d bytes in %d chunks, last %d, gaps %d", name, kept, total, bytes,
			len(chunks), next-1, gaps)
	}
	if kept < min(total, core.LogChunks) || gaps == 0 && kept != total {
		t.Errorf("%s: only %d lines of %d kept", name, kept, total)
	}
}
