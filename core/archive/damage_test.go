package archive

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRestoreUsesAnOlderCopyIfTheNewestIsDamaged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ship.o.BaseEvery = time.Minute
	f.push(3)
	f.caughtUp()
	f.clk.Advance(time.Hour)
	f.push(3)
	f.caughtUp()
	f.push(3)
	f.caughtUp()
	bases, _ := f.files()
	if len(bases) != 2 {
		t.Fatalf("base copies: %q", bases)
	}
	damage(t, bases[1], 0.5)
	r := f.restore(0)
	if r.Base != bases[0] || r.Entries != 6 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], bases[1]) {
		t.Errorf("restored %+v", r)
	}
}

func TestRestoreEndsBeforeADamagedEntry(t *testing.T) {
	t.Parallel()
	f, segment := shipped(t, 20)
	damage(t, segment, 0.5)
	r := f.restore(0)
	if r.Entries < 5 || r.Entries > 15 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], segment) {
		t.Errorf("restored %+v", r)
	}
}

// Each crash begins a timeline with one base copy, so the copy before a damaged one is often in an older timeline.
func TestRestoreUsesAnOlderTimelineIfTheNewestHasNoIntactCopy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.push(3)
	f.caughtUp()
	f.close(true)
	f.open()
	f.push(1) // its timeline begins with a copy
	f.close(true)
	f.open()
	f.push(2)
	f.caughtUp()
	bases, _ := f.files()
	if len(bases) != 2 {
		t.Fatalf("base copies: %q", bases)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.Truncate(bases[1], 1000))
	r := f.restore(0)
	if r.Base != bases[0] || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], bases[1]) {
		t.Errorf("restored %+v", r)
	}
	check(os.Truncate(bases[0], 1000))
	_, err := Restore(context.Background(), RestoreOptions{From: f.dir, To: filepath.Join(t.TempDir(), "x")})
	if !errors.Is(err, ErrEmpty) || !strings.Contains(err.Error(), bases[0]) ||
		!strings.Contains(err.Error(), bases[1]) {
		t.Errorf("no copy is intact: %v", err)
	}
}

// The checksum of an entry does not protect its length or the first bytes of the file.
func TestDamageOutsideEntriesIsNoticed(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, len(segmentMagic), len(segmentMagic) + 4} {
		f, segment := shipped(t, 20)
		b, err := os.ReadFile(segment)
		if err != nil {
			t.Fatal(err)
		}
		b[at] ^= 0x40
		if err := os.WriteFile(segment, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := f.restore(0); r.Entries != 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], segment) {
			t.Errorf("byte %d: restored %+v", at, r)
		}
		r, err := Check(context.Background(), f.dir, nil)
		if err != nil || len(r.Damage) != 1 {
			t.Errorf("byte %d: check: %+v, %v", at, r, err)
		}
		f.close(false) // the archive has all entries; it must accept more
		f.open()
		f.push(1)
		f.caughtUp()
		f.restore(0)
	}
}

func TestTornSegmentEndsWithItsLastWholeEntry(t *testing.T) {
	t.Parallel()
	f, segment := shipped(t, 5)
	whole, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(whole); cut >= 0; cut -= 131 {
		if err := os.WriteFile(segment, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if r := f.restore(0); len(r.Notes) > 0 || r.Entries > 5 || cut == len(whole) && r.Entries != 5 ||
			cut < len(whole) && r.Entries == 5 {
			t.Errorf("cut at %d: restored %+v", cut, r)
		}
	}
}

// shipped is an archive with n entries after its base copy, and the file that has them.
func shipped(t *testing.T, n int) (f *fixture, segment string) {
	t.Helper()
	f = newFixture(t)
	f.caughtUp()
	f.push(n)
	f.caughtUp()
	_, segments := f.files()
	return f, segments[0]
}

// damage changes a byte of a file.
func damage(t *testing.T, path string, where float64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[int(float64(len(b))*where)] ^= 0x40
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRemovedFilesBeginATimeline(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(f *fixture) string{
		"archive":  func(f *fixture) string { return f.dir },
		"timeline": func(f *fixture) string { return f.ship.shipper.dir },
		"base":     func(f *fixture) string { return f.ship.shipper.basePath },
		"segment":  func(f *fixture) string { return f.ship.shipper.segPath },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := shipped(t, 3)
			if err := os.RemoveAll(remove(f)); err != nil {
				t.Fatal(err)
			}
			f.push(3)
			f.caughtUp()
			bases, _ := f.files()
			if r := f.restore(0); r.Base != bases[len(bases)-1] || r.Number != f.ship.store.Position().Number {
				t.Errorf("restored %+v of %q", r, bases)
			}
		})
	}
}
