package archive

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/record"
)

// files returns the names of the files of an archive, without their random parts.
func (f *fixture) files() (bases, segments []string) {
	f.t.Helper()
	all, err := timelines(f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, t := range all {
		for _, b := range t.bases {
			bases = append(bases, b.path)
		}
		for _, g := range t.segs {
			segments = append(segments, g.path)
		}
	}
	return bases, segments
}

func TestArchiveRestoresTheNewestState(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.push(3)
	f.caughtUp()
	f.push(3)
	f.caughtUp()
	if r := f.restore(0); r.Entries != 3 || len(r.Notes) > 0 {
		t.Errorf("restored %+v", r)
	}
}

func TestStoppedBrokerContinuesItsTimeline(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 3 {
		f.push(2)
		f.step()
		f.close(false)
		f.open()
	}
	f.caughtUp()
	if bases, _ := f.files(); len(bases) != 1 {
		t.Errorf("base copies: %q", bases)
	}
	f.restore(0)
}

func TestCrashBeforeTheLastEntriesWereShippedBeginsATimeline(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.caughtUp()
	f.push(1)
	between := f.clk.Now() - 1
	f.push(1)
	f.caughtUp()
	before := f.clk.Now()
	f.push(2)
	lost := f.clk.Now()
	f.close(true)
	f.clk.Advance(time.Second)
	f.open()
	f.push(1)
	f.caughtUp()
	if bases, _ := f.files(); len(bases) != 2 {
		t.Errorf("base copies: %q", bases)
	}
	for moment, exact := range map[core.Instant]bool{
		0: true, between: true, before: false, lost: false, f.clk.Now(): false,
	} {
		if r := f.restore(moment); r.Proof.Exact != exact {
			t.Errorf("restored %v: %+v", moment.Time(), r)
		}
	}
}

func TestFullQueueEndsTheTimelineAndABaseCopyClosesTheGap(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.caughtUp()
	f.ship.o.MaxQueueBytes = 2000
	f.broken = true
	before := f.clk.Now()
	f.push(50)
	f.step()
	st := f.ship.Status()
	if st.Overflows != 1 || st.Queued > 2000 || st.Lag < 49*time.Millisecond ||
		!strings.Contains(st.Error, "no space") {
		t.Fatalf("while the folder is full: %+v", st)
	}
	f.broken = false
	f.clk.Advance(longestPause)
	f.caughtUp()
	f.push(3)
	f.caughtUp()
	f.restore(0)
	f.restore(before)
	f.restore(before.Add(5 * time.Millisecond))
}

func TestEntriesOfAFailedWriteAreWrittenAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.push(1)
	f.caughtUp()
	f.push(4)
	f.caughtUp()
	for range 3 {
		f.broken = true
		f.push(3)
		f.step() // half of what is queued
		f.broken = false
		f.clk.Advance(longestPause)
		f.caughtUp()
	}
	if r := f.restore(0); len(r.Notes) > 0 {
		t.Errorf("notes: %q", r.Notes)
	}
	if bases, _ := f.files(); len(bases) != 1 {
		t.Errorf("base copies: %q", bases)
	}
}

func TestFailedBaseCopiesAreRetriedRarely(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ship.o.MaxQueueBytes = 300
	f.broken = true
	begun := map[string]bool{}
	for range 60 { // ten seconds each
		f.push(3)
		f.clk.Advance(10 * time.Second)
		f.ship.shipper.step(context.Background())
		if c := f.ship.shipper.copying; c != nil {
			begun[c.dir] = true
			if c.done != nil {
				<-c.done
			}
		}
	}
	if len(begun) > 8 {
		t.Errorf("%d copies of the store in ten minutes", len(begun))
	}
	f.broken = false
	f.clk.Advance(longestTimelinePause)
	f.caughtUp()
	f.restore(0)
}

// TestRestoreYieldsTheStoreAtThatTime plays random histories with crashes, full folders, restarts and new base copies.
func TestRestoreYieldsTheStoreAtThatTime(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			f := newFixture(t)
			f.options.MaxQueueBytes = 20_000
			f.options.BaseEvery = 200 * time.Millisecond
			f.ship.o = f.options.withDefaults()
			type moment struct{ at, covered core.Instant }
			var moments []moment
			var held []uint64
			for range 250 {
				for _, r := range f.do(randomOp(rng, &held)) {
					if r.Kind == core.Assigned {
						held = append(held, r.Seq)
					}
				}
				switch n := rng.IntN(100); {
				case n < 30:
					f.step()
				case n < 33:
					f.broken = true
				case n < 38:
					f.broken = false
					f.clk.Advance(longestPause)
				case n < 40:
					f.close(n == 38)
					f.clk.Advance(time.Millisecond)
					f.open()
				}
				if st := f.ship.Status(); rng.IntN(12) == 0 && st.BaseAt != 0 {
					f.clk.Advance(time.Microsecond)
					now := f.clk.Now() - 1
					moments = append(moments, moment{now, now.Add(-st.Lag)})
				}
			}
			f.broken = false
			f.clk.Advance(longestTimelinePause)
			f.caughtUp()
			f.restore(0)
			exact := 0
			for _, m := range moments {
				r := f.restore(m.at)
				v, err := Verify(t.Context(), f.dir, m.at, nil)
				if err != nil || v.Proof != r.Proof || v.Number != r.Number {
					t.Errorf("verified %+v, %v; restored %+v", v, err, r)
				}
				f.proves(r, m.at)
				if r.Proof.Exact {
					exact++
				}
				for number, at := range f.sealed {
					if number > r.Number && at < m.covered {
						t.Errorf("entry %d of %d is missing at %d, which was covered up to %d", number, at, m.at,
							m.covered)
					}
				}
			}
			if exact < len(moments)/3 {
				t.Errorf("only %d of %d moments are proven", exact, len(moments))
			}
		})
	}
}

// proves checks what a restore of a moment claims: it is exact only if no commit up to the moment is missing, and a
// gap that it names has the missing ones.
func (f *fixture) proves(r *Restored, moment core.Instant) {
	f.t.Helper()
	for number, at := range f.sealed {
		switch p := r.Proof; {
		case number <= r.Number || at > moment:
		case p.Exact:
			f.t.Errorf("entry %d of %d is missing at %d: %+v", number, at, moment, r)
		case p.From != r.At || at < p.From:
			f.t.Errorf("entry %d of %d is not in the gap of %+v", number, at, r)
		}
	}
}

func TestRestoreRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.push(1)
	f.caughtUp()
	other := t.TempDir()
	for _, c := range []struct {
		name string
		o    RestoreOptions
		want error
	}{
		{"no archive", RestoreOptions{From: other, To: filepath.Join(other, "x")}, ErrNoArchive},
		{"too early", RestoreOptions{From: f.dir, To: filepath.Join(other, "x"), At: 1}, ErrTooEarly},
		{"a folder with files", RestoreOptions{From: f.dir, To: f.data}, os.ErrExist},
	} {
		if _, err := Restore(context.Background(), c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if entries, err := os.ReadDir(other); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, markFile), []byte("broker archive 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(context.Background(),
		RestoreOptions{From: f.dir, To: filepath.Join(other, "x")}); !errors.Is(err, errNewerArchive) {
		t.Errorf("newer archive: %v", err)
	}
}

func TestFolderWithOtherFilesIsNotAnArchive(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.push(1)
	f.step()
	if st := f.ship.Status(); !strings.Contains(st.Error, "thesis.txt") || st.Lag == 0 {
		t.Errorf("status: %+v", st)
	}
}

func TestPruningKeepsEveryStateWithinKeep(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ship.o.BaseEvery, f.ship.o.Keep = time.Hour, 5*time.Hour
	var moments []core.Instant
	for i := range 20 {
		f.push(2)
		f.caughtUp()
		f.clk.Advance(time.Minute)
		moments = append(moments, f.clk.Now())
		if i%4 == 3 {
			f.close(true) // a segment of its own
			f.clk.Advance(time.Minute)
			f.open()
			f.ship.o.BaseEvery, f.ship.o.Keep = time.Hour, 5*time.Hour
		}
		f.clk.Advance(29 * time.Minute)
	}
	f.push(1)
	f.caughtUp()
	bases, segments := f.files()
	if len(bases) > 9 || len(segments) > 9 {
		t.Errorf("%d base copies and %d segments are left", len(bases), len(segments))
	}
	oldest := f.clk.Now().Add(-5 * time.Hour)
	for _, m := range moments {
		if m >= oldest {
			f.restore(m)
		}
	}
	if st := f.ship.Status(); st.Earliest > oldest || st.Earliest < oldest.Add(-2*time.Hour) {
		t.Errorf("earliest moment: %v, wanted before %v", st.Earliest.Time(), oldest.Time())
	}
	slices.Sort(bases)
	if _, err := Restore(context.Background(), RestoreOptions{
		From: f.dir, To: filepath.Join(t.TempDir(), "x"), At: moments[0],
	}); !errors.Is(err, ErrTooEarly) {
		t.Errorf("restore a pruned moment: %v", err)
	}
}

func TestCheckFindsGapsAndDamage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ship.o.BaseEvery = time.Minute
	f.caughtUp()
	for range 3 {
		f.push(4)
		f.caughtUp()
		f.clk.Advance(time.Hour)
	}
	f.close(true)
	f.open()
	f.push(2)
	f.close(true) // these two are not shipped
	f.open()
	f.push(1)
	f.caughtUp()
	check := func(ranges int, damage ...string) {
		t.Helper()
		r, err := Check(context.Background(), f.dir, nil)
		if err != nil || len(r.Ranges) != ranges || len(r.Damage) != len(damage) || len(r.Gaps) != ranges-1 {
			t.Fatalf("%+v, %v; wanted %d ranges", r, err, ranges)
		}
		for i, d := range damage {
			if !strings.Contains(r.Damage[i], d) {
				t.Errorf("damage %q, not %q", r.Damage[i], d)
			}
		}
	}
	check(2)
	bases, segments := f.files()
	damage(t, bases[1], 0.5)
	check(2, bases[1])
	damage(t, segments[0], 0.4)
	check(3, bases[1], segments[0], "the entries between 9 and 13 are missing")
	if err := os.Remove(segments[0]); err != nil {
		t.Fatal(err)
	}
	r, err := Check(context.Background(), f.dir, nil)
	if err != nil || len(r.Ranges) < 3 {
		t.Errorf("without its first segment: %+v, %v", r, err)
	}
}

func TestCheckFindsRemovedFiles(t *testing.T) {
	t.Parallel()
	archive := func() *fixture { // one timeline with three copies and four logs
		f := newFixture(t)
		f.ship.o.BaseEvery = time.Minute
		f.options.BaseEvery = time.Minute
		f.caughtUp()
		for range 3 {
			f.push(4)
			f.caughtUp()
			f.close(false)
			f.clk.Advance(time.Hour)
			f.open()
		}
		f.push(1)
		f.caughtUp()
		return f
	}
	const orphan = "the base copy before it is missing"
	type files = []string
	for name, c := range map[string]struct {
		remove func(bases, segments files) files
		want   string
	}{
		"the first copy":               {func(b, _ files) files { return b[:1] }, orphan},
		"all copies but the newest":    {func(b, _ files) files { return b[:len(b)-1] }, orphan},
		"the log between two copies":   {func(_, s files) files { return s[1:2] }, "missing"},
		"the logs before a later copy": {func(_, s files) files { return s[:2] }, "the entries between"},
		"the first copy and its log":   {func(b, s files) files { return files{b[0], s[0]} }, ""},
		"nothing":                      {func(_, _ files) files { return nil }, ""},
		"copies but the newest, logs":  {func(b, s files) files { return append(b[:2], s[:2]...) }, ""},
	} {
		f := archive()
		bases, segments := f.files()
		for _, path := range c.remove(slices.Clone(bases), slices.Clone(segments)) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Check(t.Context(), f.dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if found := strings.Join(r.Damage, "; "); (found == "") != (c.want == "") || !strings.Contains(found, c.want) {
			t.Errorf("without %s: damage %q, want %q; files %q %q", name, found, c.want, bases, segments)
		}
		for number, at := range f.sealed { // whatever is missing, no restore claims to be exact
			v, err := Verify(t.Context(), f.dir, at, nil)
			if err == nil {
				f.proves(v, at)
			} else if !errors.Is(err, ErrTooEarly) {
				t.Errorf("without %s: verify entry %d: %v", name, number, err)
			}
		}
	}
}

func FuzzSegment(f *testing.F) {
	f.Add([]byte(segmentMagic))
	e := &record.Entry{Position: record.Position{Number: 2, At: 5}, Prev: 1, Batch: &record.CommitBatch{}}
	f.Add(appendFrame(appendFrame([]byte(segmentMagic), e), e))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "s")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := openSegment(path)
		if err != nil {
			return
		}
		defer in.close()
		for range len(b) + 1 {
			if _, err := in.next(); err != nil {
				return
			}
			if len(in.buf) > len(b) {
				t.Errorf("an entry of %d bytes in %d", len(in.buf), len(b))
			}
		}
		t.Errorf("more entries than bytes")
	})
}
