package joblog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"broker/core"
	"broker/core/internal/table/tabletest"
)

// fixture is the log of one leased job and its documents on disk.
type fixture struct {
	*testing.T
	table *tabletest.Table
	logs  *Logs
	h     uint32
	disk  map[string][]byte
}

func setup(t *testing.T) *fixture {
	f := &fixture{T: t, table: tabletest.New(), disk: map[string][]byte{}}
	f.logs = New(f.table.Table)
	f.table.Queue("q")
	f.h, _ = f.table.Add(&core.Job{Queue: "q"})
	f.table.Move(f.h, core.Leased)
	return f
}

// documents are those on disk.
func (f *fixture) documents() (all []core.MetaEntry) {
	for _, name := range slices.Sorted(maps.Keys(f.disk)) {
		all = append(all, core.MetaEntry{Name: name, Value: f.disk[name]})
	}
	return all
}

// extend appends lines, reading the log if its end is not known.
func (f *fixture) extend(lines ...string) {
	f.Helper()
	l := f.logs.Known(f.h)
	if l == nil {
		s := f.logs.NewSupplied()
		s.Set(f.documents(), nil)
		var err error
		if l, err = f.logs.Take(s); err != nil || l == nil {
			f.Fatalf("the log is not supplied: %v", err)
		}
	}
	f.logs.Extend(f.h, f.table.At(f.h), l, lines)
}

// seal writes the open batch to the disk.
func (f *fixture) seal() {
	for name, value := range f.table.Documents() {
		if value == nil {
			delete(f.disk, name)
		} else {
			f.disk[name] = value
		}
	}
	f.table.Durable = f.table.Open - 1
	f.logs.Committed()
}

// lines are those on disk, one text for each.
func (f *fixture) lines() (all []string) {
	f.Helper()
	chunks, err := core.DecodeLog(f.documents())
	if err != nil {
		f.Fatal(err)
	}
	for _, l := range core.LogLines(chunks, 0) {
		all = append(all, l.Text)
	}
	return all
}

func numbered(from, to int) (lines []string) {
	for i := from; i <= to; i++ {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	return lines
}

func TestLinesAreKeptInOrderWhereverBatchesEnd(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.extend(numbered(1, 10)...)
	f.extend(numbered(11, 70)...)
	f.seal()
	f.extend(numbered(71, 120)...)
	f.seal()
	if have := f.lines(); !slices.Equal(have, numbered(1, 120)) {
		t.Errorf("the log has %d lines: %v", len(have), have)
	}
}

func TestFirstAndLastLinesStay(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const all = 3 * core.MaxLogLines
	for i := 1; i <= all; i += 100 {
		f.extend(numbered(i, i+99)...)
		f.seal()
	}
	have := f.lines()
	if len(have) > core.MaxLogLines+1 || len(have) < core.MaxLogLines-core.LogChunkLines {
		t.Errorf("the log has %d lines", len(have))
	}
	first := core.LogFirst * core.LogChunkLines
	if !slices.Equal(have[:first], numbered(1, first)) {
		t.Error("the first lines are others")
	}
	if !strings.Contains(have[first], "missing") || have[len(have)-1] != fmt.Sprintf("line %d", all) {
		t.Errorf("after the first lines comes %q, at the end %q", have[first], have[len(have)-1])
	}
}

func TestEndOfLogIsForgottenOnceItIsDurableAndJobNotLeased(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.extend("a")
	f.seal()
	if len(f.logs.ends) != 1 {
		t.Error("the end of the log of a leased job is forgotten")
	}
	f.extend("b")
	f.table.Move(f.h, core.Ready)
	f.logs.Leave(f.table.At(f.h))
	if f.logs.Committed(); len(f.logs.ends) != 1 {
		t.Error("the end of a log is forgotten before it is on disk")
	}
	if f.seal(); len(f.logs.ends)+len(f.logs.left) != 0 {
		t.Error("the end of a log is not forgotten")
	}
	f.table.Move(f.h, core.Leased)
	f.extend("c")
	f.seal()
	if have := f.lines(); !slices.Equal(have, []string{"a", "b", "c"}) {
		t.Errorf("the log is %v", have)
	}
}

func TestLogReadBeforeItsCommitIsReadAgain(t *testing.T) {
	t.Parallel()
	f := setup(t)
	s := f.logs.NewSupplied()
	s.Set(f.documents(), nil)
	f.extend("a")
	f.table.Move(f.h, core.Ready)
	f.logs.Leave(f.table.At(f.h))
	f.seal()
	if l, err := f.logs.Take(s); l != nil || err != nil {
		t.Errorf("an end from before the last line is taken: %v, %v", l, err)
	}
}

func TestDamagedLogIsAnError(t *testing.T) {
	t.Parallel()
	f := setup(t)
	s := f.logs.NewSupplied()
	s.Set([]core.MetaEntry{{Name: "x", Value: []byte("no chunk")}}, nil)
	if _, err := f.logs.Take(s); !errors.Is(err, core.ErrDamaged) {
		t.Errorf("a damaged log is taken: %v", err)
	}
}

func TestRemovedJobLeavesNoLog(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.extend(numbered(1, 200)...)
	f.seal()
	if f.logs.Remove(f.h, f.table.At(f.h)); len(f.logs.ends) != 0 {
		t.Error("the end of the log stays")
	}
	if f.seal(); len(f.disk) != 0 {
		t.Errorf("%d documents stay", len(f.disk))
	}
}

// FuzzLog appends lines of any length, in batches of any size, and sometimes forgets the end of the log. All lines
// within the bounds are kept whole.
func FuzzLog(f *testing.F) {
	f.Add([]byte{1, 200, 3, 255, 255, 0, 9, 7, 255}, "text of a line")
	f.Fuzz(func(t *testing.T, steps []byte, text string) {
		x := setup(t)
		var want []string
		for _, step := range steps[:min(len(steps), 300)] {
			var lines []string
			for range step & 7 {
				line := strings.Repeat(text, int(step>>4)*8)
				lines = append(lines, line)
				want = append(want, core.CutText(line, core.MaxLogLine))
			}
			x.extend(lines...)
			switch step & 8 {
			case 0:
				x.seal()
			default:
				x.table.Move(x.h, core.Ready)
				x.logs.Leave(x.table.At(x.h))
				x.seal()
				x.table.Move(x.h, core.Leased)
			}
		}
		have, sum := x.lines(), 0
		for _, line := range have {
			sum += len(line)
		}
		if len(have) > core.MaxLogLines+1 || sum > core.MaxLogBytes+64 || len(x.disk) > core.LogChunks {
			t.Errorf("%d lines of %d bytes in %d documents", len(have), sum, len(x.disk))
		}
		if n := len(want); n > 0 && have[len(have)-1] != want[n-1] {
			t.Errorf("the last line is %q, want %q", have[len(have)-1], want[n-1])
		}
		if len(x.disk) < core.LogFirst && !slices.Equal(have, want) {
			t.Errorf("the log has %d lines of %d", len(have), len(want))
		}
	})
}
