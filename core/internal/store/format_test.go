package store

import (
	"fmt"
	"testing"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/store/integrity"
)

// storeFormat is the format that a store has on disk: by its key and by FORMAT, which must agree.
func storeFormat(t *testing.T, disk *testDisk, s *Store) int {
	t.Helper()
	v, err := s.get([]byte{spaceVersion})
	if err != nil {
		t.Fatal(err)
	}
	text := string(disk.contents(t, disk.PathJoin(testDir, integrity.FormatFile)))
	if text != fmt.Sprintf("broker store, format %d\n", v[0]) {
		t.Errorf("the key says %d, FORMAT says %q", v[0], text)
	}
	return int(v[0])
}

// featured are commits with one feature each, by the format that they need. A broker that does not know the feature
// must not open the store.
func featured() map[string]*record.CommitBatch {
	plain := func(set func(*core.Job)) *record.CommitBatch {
		j := &core.Job{Seq: 1, Queue: "q", Type: "q"}
		set(j)
		return &record.CommitBatch{Changes: []record.Change{{Seq: 1, Job: j}}}
	}
	leased := func(s record.Status) *record.CommitBatch {
		b := plain(func(*core.Job) {})
		s.State = core.Leased
		b.Changes[0].Status = &s
		return b
	}
	meta := func(name, value string) *record.CommitBatch {
		return &record.CommitBatch{Meta: []core.MetaEntry{{Name: name, Value: []byte(value)}}}
	}
	return map[string]*record.CommitBatch{
		"2 nothing new":      leased(record.Status{Attempts: 1, LeaseFor: 1e9, Holder: core.HeldByWorker, Worker: "w"}),
		"2 a setting":        meta("http/key/1", "v"),
		"2 a paused queue":   meta("core/queue/q", `{"paused":true}`),
		"4 on_broken":        plain(func(j *core.Job) { j.OnBroken = core.BrokenDrops }),
		"4 cost":             plain(func(j *core.Job) { j.Cost = 2 }),
		"4 wide priority":    plain(func(j *core.Job) { j.Priority = core.MaxPriority }),
		"4 own values":       plain(func(j *core.Job) { j.Own = core.PolicyBackoff }),
		"4 tally":            leased(record.Status{Tally: &core.Tally{Kicks: 1}}),
		"4 moved":            leased(record.Status{Moved: &record.Moved{Queue: "r"}}),
		"4 limit":            meta("core/shape/q", `{"limits":[{"leased":1}]}`),
		"4 fair turns":       meta("core/shape/q", `{"key":1,"tag":"t","fair":true}`),
		"4 order":            meta("core/shape/q", `{"key":1,"tag":"t","ordered":true}`),
		"4 shared limit":     meta("core/limit/all", `{"leased":1}`),
		"4 policy":           meta("core/policy/queue/q", `{}`),
		"4 window":           meta("core/window/1", `{}`),
		"4 rule":             meta("core/queue/q", `{"spent":{"leases":1,"to":"r"}}`),
		"5 end of the lease": leased(record.Status{LeaseUntil: 7}),
	}
}

// What is in a store decides which brokers may open it. The format is raised in the commit that needs it, and stays.
func TestFeaturesRaiseTheFormatOfTheStore(t *testing.T) {
	t.Parallel()
	for name, batch := range featured() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := int(name[0] - '0')
			disk := newDisk()
			s := mustOpen(t, disk)
			if got := storeFormat(t, disk, s); got != integrity.BaseFormat || s.Format() != 1 {
				t.Errorf("a new store has format %d", got)
			}
			if err := s.Commit(batch); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got := storeFormat(t, disk, s); got != want {
					t.Errorf("format %d, want %d", got, want)
				}
				needed := want
				if want == integrity.BaseFormat {
					needed = 1
				}
				if got := s.Format(); got != needed {
					t.Errorf("readers need format %d, want %d", got, want)
				}
				mustClose(t, s)
				s = mustOpen(t, disk)
			}
			mustClose(t, s)
		})
	}
}

// A crash at any write leaves a store without the feature, or one that older brokers refuse.
func TestCrashNeverLeavesAFeatureInAnOlderFormat(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	s := mustOpen(t, disk)
	var left []*testDisk
	disk.hook(func(op diskOp) error {
		if op.write {
			disk.mu.Lock()
			defer disk.mu.Unlock()
			left = append(left, disk.crash(uint64(len(left)), 50*(len(left)%3)))
		}
		return nil
	})
	if err := s.Commit(featured()["4 limit"]); err != nil {
		t.Fatal(err)
	}
	disk.hook(nil)
	mustClose(t, s)
	found := map[bool]int{}
	for _, d := range append(left, disk.crash(1, 0)) {
		s := mustOpen(t, d)
		limits := 0
		if err := s.ScanMeta("core/shape/", func(string, []byte) error { limits++; return nil }); err != nil {
			t.Fatal(err)
		}
		if got := storeFormat(t, d, s); got != integrity.BaseFormat+2*limits {
			t.Errorf("%d limits in a store of format %d", limits, got)
		}
		found[limits > 0]++
		mustClose(t, s)
	}
	if found[true] == 0 || found[false] == 0 {
		t.Errorf("%d crashes before the commit, %d after", found[false], found[true])
	}
}

// An older broker of format 2 may have written features. The first commit after a start raises the format.
func TestStartRaisesTheFormatOfAnOlderBroker(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"4 on_broken", "4 own values", "4 shared limit", "4 tally"} {
		disk := newDisk()
		s := mustOpen(t, disk)
		s.commit.format.Store(record.NewestFormat) // so it writes none
		if err := s.Commit(featured()[name]); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		s = mustOpen(t, disk)
		if got := storeFormat(t, disk, s); got != integrity.BaseFormat {
			t.Fatalf("%s: format %d", name, got)
		}
		err := s.Scan(t.Context(), nil, func(*record.Record) error { return nil })
		if err == nil {
			err = s.ScanMeta("", func(string, []byte) error { return nil })
		}
		if err == nil && s.Format() != 4 {
			t.Errorf("%s: readers need format %d", name, s.Format())
		}
		if err == nil {
			err = s.Commit(&record.CommitBatch{Meta: []core.MetaEntry{{Name: "a", Value: []byte("b")}}})
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := storeFormat(t, disk, s); got != 4 {
			t.Errorf("%s: format %d after a start", name, got)
		}
		mustClose(t, s)
	}
}

// A part that no format lists is not written at all: it was forgotten in record.Features.
func TestUnlistedMetadataIsRefused(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newDisk())
	before := s.Position().Number
	forgotten := []core.MetaEntry{{Name: "core/forgotten", Value: []byte("v")}}
	if err := s.Commit(&record.CommitBatch{Meta: forgotten}); err == nil || s.Position().Number != before {
		t.Errorf("%v", err)
	}
	mustClose(t, s)
}
