package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"broker/core/internal/record"
	"broker/core/internal/record/recordtest"
	"broker/core/internal/store/integrity"
)

// breakTables removes tables, or cuts them.
func breakTables(t *testing.T, disk *testDisk, cut bool, names ...string) {
	t.Helper()
	for _, name := range names {
		data := slices.Clone(disk.contents(t, name))
		if cut {
			writeFile(t, disk, name, string(data[:len(data)/2]))
		} else if err := disk.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// Without one table, all keys of the others are copied. With half of one, all keys in the half are copied too.
func TestSalvageReadsTheOtherTablesAndTheRestOfACutOne(t *testing.T) {
	t.Parallel()
	const jobs = 800
	whole := manyJobs(t, jobs)
	want := contents(t, whole.crash(1, 100), testDir)
	tables := whole.files(t, integrity.TableSuffix)
	lost := map[bool]int{}
	for _, cut := range []bool{false, true} {
		for _, name := range tables {
			disk := whole.crash(1, 100)
			breakTables(t, disk, cut, name)
			v, err := Salvage(t.Context(), Options{Dir: testDir, FS: disk}, salvageFolder, nil, nil)
			if err != nil {
				t.Fatalf("%s, cut %v: %v", name, cut, err)
			}
			got := contents(t, disk, salvageFolder)
			for key, value := range got {
				if want[key] != value && !isInternal([]byte(key)) {
					t.Errorf("%s, cut %v: key %x is not as it was", name, cut, key)
				}
			}
			lost[cut] += len(want) - len(got)
			said := len(v.Lost) == 1 && strings.Contains(v.Lost[0], disk.PathBase(name))
			if len(want) > len(got) && !said || len(v.Lost) > 1 {
				t.Errorf("%s, cut %v: %d of %d keys are lost, but it says %q", name, cut, len(want)-len(got), len(want),
					v.Lost)
			}
			if len(want)-len(got) > 1100 {
				t.Errorf("%s, cut %v: %d of %d keys are lost: %q", name, cut, len(want)-len(got), len(want), v.Lost)
			}
		}
	}
	if all := lost[false]; all < len(want)-len(tables) || all > len(want)*3/2 {
		t.Errorf("all tables together held %d keys, want about %d", all, len(want))
	}
	if half := lost[true]; half < lost[false]*2/5 || half > lost[false]*3/5 {
		t.Errorf("halves of all tables held %d keys of %d", half, lost[false])
	}
}

// A missing table takes no job with it that is also in an older table. Job 200 is in the log.
func TestSalvageWithoutANewerTableCopiesTheOlderOnes(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	s := mustOpen(t, disk)
	var changes, later []record.Change
	for seq := uint64(1); seq <= 100; seq++ {
		changes = append(changes, record.Change{Seq: seq, Job: job(seq, 100)})
		status := recordtest.FullStatus()
		status.Waiting, status.Unstored, status.LeaseUntil = []uint64{50, 150}, nil, 0 // the format of the store stays
		later = append(later, record.Change{Seq: seq + 50, Job: job(seq+50, 100), Status: status})
	}
	mustCommit(t, s, changes...)
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	older := disk.files(t, integrity.TableSuffix)
	// no compaction merges the two tables of the next flush, one of jobs and one of metadata
	held := make(chan struct{})
	disk.hook(func(op diskOp) error {
		if op.category == "pebble-compaction" {
			<-held
		}
		return nil
	})
	mustCommit(t, s, later...)
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	status := recordtest.FullStatus()
	status.Waiting, status.Unstored, status.LeaseUntil = []uint64{50, 149}, nil, 0
	mustCommit(t, s, record.Change{Seq: 200, Job: job(200, 100), Status: status})
	live := disk
	disk = live.crash(1, 100)
	close(held)
	mustClose(t, s)
	newer := disk.files(t, integrity.TableSuffix)
	newer = slices.DeleteFunc(newer, func(name string) bool { return slices.Contains(older, name) })
	if len(newer) < 2 {
		t.Fatalf("tables %q", newer)
	}
	slices.Sort(newer)
	breakTables(t, disk, false, newer[0])
	v, err := Salvage(t.Context(), Options{Dir: testDir, FS: disk}, salvageFolder, nil, nil)
	if err != nil || v.Jobs != 101 {
		t.Fatalf("%+v, %v", v, err)
	}
	if want := "up to 50 jobs between 51 and 150 are lost; 50 others there"; !strings.Contains(fmt.Sprint(v.Lost),
		want) {
		t.Errorf("lost: %q, want %q", v.Lost, want)
	}
	salvaged, err := Open(Options{Dir: salvageFolder, FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, salvaged)
	var last record.Status
	if err := salvaged.Scan(t.Context(), nil, func(r *record.Record) error {
		if r.Job.Seq == 200 {
			last = *r.Status
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(last.Unstored, []uint64{149}) {
		t.Errorf("broken dependencies: %v, want 149, which is lost, but not 50, which was copied", last.Unstored)
	}
}

// All tables are missing: the log may still hold something, and the new store opens.
func TestSalvageWithoutAnyTable(t *testing.T) {
	t.Parallel()
	disk := manyJobs(t, 400)
	tables := disk.files(t, integrity.TableSuffix)
	breakTables(t, disk, false, tables...)
	v, err := Salvage(t.Context(), Options{Dir: testDir, FS: disk}, salvageFolder, nil, nil)
	if err != nil || v.Jobs != 0 || len(v.Lost) < 4 {
		t.Fatalf("%+v, %v", v, err)
	}
	contents(t, disk, salvageFolder)
}

// Without its list of tables, or with a damaged one, a store is put together from its tables and logs.
func TestSalvageWithoutAManifestReadsAllTablesAndLogs(t *testing.T) {
	t.Parallel()
	const seed, n = 17, 120
	live := newDisk()
	s := mustOpen(t, live)
	mustPlay(t, s, seed, 0, n)
	running := live.crash(1, 0)
	mustClose(t, s)
	for name, whole := range map[string]*testDisk{"stopped": live, "killed": running, "jobs only": manyJobs(t, 400)} {
		want := contents(t, whole.crash(1, 100), testDir)
		for _, damage := range []string{"no manifest", "no manifest and no marker", "half a manifest", "no markers"} {
			disk := whole.crash(1, 100)
			for _, file := range disk.files(t, "") {
				base := disk.PathBase(file)
				manifest := strings.HasPrefix(base, integrity.ManifestPrefix)
				marker := strings.HasPrefix(base, integrity.ManifestMarker)
				switch {
				case manifest && damage == "half a manifest":
					breakTables(t, disk, true, file)
				case manifest && strings.HasPrefix(damage, "no manifest"),
					marker && damage != "no manifest" && damage != "half a manifest",
					strings.HasPrefix(base, integrity.FormatMarker) && damage == "no markers":
					if err := disk.Remove(file); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := Open(Options{Dir: testDir, FS: disk}); err == nil {
				t.Fatalf("%s, %s: the store opens", name, damage)
			}
			v, err := Salvage(t.Context(), Options{Dir: testDir, FS: disk}, salvageFolder, nil, nil)
			if err != nil || len(v.Lost) == 0 || !strings.Contains(v.Lost[0], "were read") {
				t.Errorf("%s, %s: %+v, %v", name, damage, v, err)
				continue
			}
			got := contents(t, disk, salvageFolder)
			for key, value := range want {
				if got[key] != value && !isInternal([]byte(key)) {
					t.Errorf("%s, %s: key %x is lost or old", name, damage, key)
				}
			}
			for key := range got {
				if _, there := want[key]; !there {
					t.Errorf("%s, %s: key %x is back", name, damage, key)
				}
			}
		}
	}
}

// The file FORMAT says nothing that the records do not say.
func TestSalvageWithoutAFormatFileCopiesEverything(t *testing.T) {
	t.Parallel()
	whole := manyJobs(t, 400)
	want := contents(t, whole.crash(1, 100), testDir)
	for _, text := range []string{"", "broker store, format 2broken"} {
		disk := whole.crash(1, 100)
		writeFile(t, disk, disk.PathJoin(testDir, integrity.FormatFile), text)
		v, err := Salvage(t.Context(), Options{Dir: testDir, FS: disk}, salvageFolder, nil, nil)
		if err != nil || v.Jobs != 400 || len(v.Lost) != 0 {
			t.Fatalf("%q: %+v, %v", text, v, err)
		}
		wantSame(t, contents(t, disk, salvageFolder), want)
	}
}

// A folder in which nothing of the store is left is refused with a message that does not name the command that was run.
func TestSalvageOfAnEmptyFolderIsRefused(t *testing.T) {
	t.Parallel()
	disk := manyJobs(t, 40)
	for _, file := range disk.files(t, "") {
		if !strings.HasSuffix(file, integrity.FormatFile) {
			if err := disk.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := Salvage(t.Context(), Options{Dir: testDir, FS: disk}, salvageFolder, nil, nil)
	if err == nil || strings.Contains(err.Error(), "--salvage") {
		t.Errorf("error %v", err)
	}
}
