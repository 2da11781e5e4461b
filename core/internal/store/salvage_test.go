package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/record/recordtest"
	"broker/core/internal/store/integrity"
)

const salvageFolder = "salvaged"

// manyJobs returns a disk with a stopped store. The records of its jobs fill many blocks, and some jobs have changed
// later.
func manyJobs(t *testing.T, jobs uint64) *testDisk {
	t.Helper()
	disk := newDisk()
	s := mustOpen(t, disk)
	s.commit.format.Store(record.NewestFormat) // the number itself would make more tables, which are compacted
	random := rand.New(rand.NewPCG(1, 1))
	add := func(from, to uint64, status bool) {
		var changes []record.Change
		for seq := from; seq <= to; seq++ {
			j := job(seq, 100)
			if seq%100 == 0 {
				j.Body = make([]byte, 2*record.InlineBytes)
			}
			for i := range j.Body {
				j.Body[i] = byte(random.Uint32()) // does not compress
			}
			ch := record.Change{Seq: seq, Job: j}
			if status {
				ch.Status = recordtest.FullStatus()
				ch.Status.Waiting = nil // those of lost jobs change
			}
			changes = append(changes, ch)
		}
		mustCommit(t, s, changes...)
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for from := uint64(1); from <= jobs; from += jobs / 4 {
		add(from, from+jobs/4-1, from > jobs/2)
	}
	var meta []core.MetaEntry
	for i := range 1000 {
		meta = append(meta, core.MetaEntry{Name: fmt.Sprint("setting-", i), Value: bytes.Repeat([]byte{byte(i)}, 100)})
	}
	if err := s.Commit(&record.CommitBatch{Meta: meta}); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	return disk
}

// contents returns everything in a store, by key.
func contents(t *testing.T, disk *testDisk, dir string) map[string]string {
	t.Helper()
	s, err := Open(Options{Dir: dir, FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, s)
	it, err := s.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for ok := it.First(); ok; ok = it.Next() {
		all[string(it.Key())] = string(it.Value())
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSalvageCopiesASoundStore(t *testing.T) {
	t.Parallel()
	disk := manyJobs(t, 400)
	want := contents(t, disk.crash(1, 100), testDir)
	v, err := Salvage(t.Context(), Options{Dir: testDir, FS: disk}, salvageFolder, nil, nil)
	if err != nil || v.Jobs != 400 || len(v.Lost) != 0 {
		t.Fatalf("%+v, %v", v, err)
	}
	wantSame(t, contents(t, disk, salvageFolder), want)
	if _, err := Salvage(t.Context(), Options{Dir: testDir, FS: disk}, salvageFolder, nil, nil); err == nil {
		t.Error("a folder that exists was written to")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Salvage(ctx, Options{Dir: testDir, FS: disk}, "other", nil, nil); err != nil &&
		!errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A wrong bit in a table loses only the keys around it, and no key comes back that did not exist.
func TestSalvageLosesTheDamagedBlocksOnly(t *testing.T) {
	t.Parallel()
	const jobs = 2000
	whole := manyJobs(t, jobs)
	want := contents(t, whole.crash(1, 100), testDir)
	tables := whole.files(t, integrity.TableSuffix)
	random := rand.New(rand.NewPCG(2, 2))
	lossy := 0
	for round := range 40 {
		disk := whole.crash(1, 100)
		name := tables[random.IntN(len(tables))]
		data := slices.Clone(disk.contents(t, name))
		at := random.IntN(len(data))
		data[at] ^= 1 << random.IntN(8)
		writeFile(t, disk, name, string(data))
		v, err := Salvage(t.Context(), Options{Dir: testDir, FS: disk}, salvageFolder, nil, nil)
		if err != nil {
			t.Fatalf("round %d, %s at %d of %d: %v", round, name, at, len(data), err)
		}
		got := contents(t, disk, salvageFolder)
		lost := 0
		for key := range want {
			if _, found := got[key]; !found {
				lost++
			}
		}
		for key, value := range got {
			if want[key] != value && !isInternal([]byte(key)) {
				t.Errorf("round %d: key %x is not as it was", round, key)
			}
			if seq, part, ok := parseKey([]byte(key)); ok && key[0] == spaceJob && part != partJob &&
				got[key[:seqKeyBytes]] == "" {
				t.Errorf("round %d: part %q of job %d has no job", round, part, seq)
			}
		}
		if lost > 0 != (len(v.Lost) > 0) {
			t.Errorf("round %d: %d keys are lost, but it says %q", round, lost, v.Lost)
		}
		if lost > 0 {
			lossy++
		}
		// An index or a footer takes its whole table with it; all settings are in one.
		most := 100
		if at > len(data)-2000 {
			most = 1001
		}
		if lost > most {
			t.Errorf("round %d, %s at %d of %d: %d keys are lost: %q", round, name, at, len(data), lost, v.Lost)
		}
		if strings.Contains(fmt.Sprint(v.Lost), "detail carrier") {
			t.Errorf("text for programmers: %q", v.Lost)
		}
	}
	if lossy < 20 {
		t.Errorf("only %d rounds lost something", lossy)
	}
}
