package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/store/atomicfile"
	"broker/core/internal/store/integrity"
)

// A script is a sequence of commits that a seed determines. Each commit writes its number as a metadata entry. So a
// store shows how many commits it has, and its content after any number of commits can be computed.

// scriptEntry holds the number of the last commit.
const scriptEntry = "test/commit"

// model is what a store holds, by Seq.
type model map[uint64]record.Change

// step makes the i-th commit of a script and applies it to m.
func (m model) step(seed uint64, i int) *record.CommitBatch {
	r := rand.New(rand.NewPCG(seed, uint64(i)))
	b := &record.CommitBatch{Meta: []core.MetaEntry{{
		Name: scriptEntry, Value: binary.BigEndian.AppendUint64(nil, uint64(i)),
	}}}
	base := uint64(i) * 100
	for k := range 1 + r.Uint64N(6) {
		ch := record.Change{Seq: base + k, Job: job(base+k, int(r.Uint64N(3000)))}
		if r.IntN(3) == 0 {
			ch.Status = &record.Status{State: core.Scheduled, Attempts: r.Uint32(), Worker: fmt.Sprint(i)}
		}
		b.Changes = append(b.Changes, ch)
	}
	for back := 1; back <= 3; back++ { // older jobs change and go
		for k := range uint64(6) {
			seq := base - uint64(back)*100 + k
			old, ok := m[seq]
			if !ok {
				continue
			}
			switch r.IntN(5) {
			case 0:
				b.Changes = append(b.Changes, record.Change{
					Seq: seq, Status: &record.Status{State: core.Leased, Attempts: uint32(i), Worker: "w"},
					Failure: &core.Failure{Message: fmt.Sprint(i), Data: make([]byte, r.IntN(3000))},
				})
			case 1:
				gone := record.Change{Seq: seq, Gone: true, BodyBytes: len(old.Job.Body)}
				gone.Stored = old.Stored | record.HasStatus | record.HasFailure | record.HasOutcome
				b.Changes = append(b.Changes, gone)
			case 2:
				b.Changes = append(b.Changes, rewrite(old, r))
			}
		}
	}
	m.apply(b)
	return b
}

// rewrite is an update of a job: with another body, or with another priority and the same body.
func rewrite(old record.Change, r *rand.Rand) record.Change {
	j := *old.Job
	ch := record.Change{
		Seq: j.Seq, Job: &j, Stored: old.Stored | record.Rewritten, BodyBytes: len(j.Body), KeepBody: r.IntN(2) == 0,
	}
	j.Priority = r.Int64N(2*core.MaxPriority) - core.MaxPriority
	if !ch.KeepBody {
		j.Body = job(j.Seq, int(r.Uint64N(3000))).Body
	}
	return ch
}

func (m model) apply(b *record.CommitBatch) {
	for _, ch := range b.Changes {
		if ch.Gone {
			delete(m, ch.Seq)
			continue
		}
		now := m[ch.Seq]
		now.Seq = ch.Seq
		if ch.Job != nil {
			now.Job, now.Stored = ch.Job, ch.Stored
		}
		if ch.Status != nil {
			now.Status = ch.Status
		}
		if ch.Failure != nil {
			now.Failure = ch.Failure
		}
		m[ch.Seq] = now
	}
}

// scripts remembers the model after each commit of each script.
var scripts struct {
	sync.Mutex
	bySeed map[uint64][]model
}

// after is the model after n commits; it is shared, so clone it to go on from there.
func after(seed uint64, n int) model {
	scripts.Lock()
	defer scripts.Unlock()
	if scripts.bySeed == nil {
		scripts.bySeed = map[uint64][]model{}
	}
	known := scripts.bySeed[seed]
	if len(known) == 0 {
		known = []model{{}}
	}
	for i := len(known); i <= n; i++ {
		next := maps.Clone(known[i-1])
		next.step(seed, i)
		known = append(known, next)
	}
	scripts.bySeed[seed] = known
	return known[n]
}

// commits is how many commits of the script the store holds.
func commits(s *Store) (int, error) {
	v, err := s.Meta(scriptEntry)
	if errors.Is(err, ErrMissing) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return int(binary.BigEndian.Uint64(v)), nil
}

// same reads the whole store and returns how it differs from m.
func (m model) same(s *Store) error {
	seen := 0
	err := s.Scan(context.Background(), nil, func(r *record.Record) error {
		seen++
		want, ok := m[r.Job.Seq]
		if !ok {
			return fmt.Errorf("job %d is there", r.Job.Seq)
		}
		if !reflect.DeepEqual(r.Status, want.Status) && (r.Status == nil || want.Status == nil ||
			r.Status.Worker != want.Status.Worker || r.Status.Attempts != want.Status.Attempts) {
			return fmt.Errorf("job %d has status %+v instead of %+v", r.Job.Seq, r.Status, want.Status)
		}
		j, err := s.Job(r.Job.Seq)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(j, want.Job) {
			return fmt.Errorf("job %d is %+v instead of %+v", r.Job.Seq, j, want.Job)
		}
		if want.Failure != nil {
			e, err := s.Failure(r.Job.Seq)
			if err != nil {
				return err
			}
			if e.Message != want.Failure.Message || len(e.Data) != len(want.Failure.Data) {
				return fmt.Errorf("job %d has failure %q instead of %q", r.Job.Seq, e.Message, want.Failure.Message)
			}
		}
		return nil
	})
	if err == nil && seen != len(m) {
		err = fmt.Errorf("%d jobs instead of %d", seen, len(m))
	}
	return err
}

// crashed is a disk after a crash, and between which commits it happened.
type crashed struct {
	disk         *testDisk
	op           diskOp
	acknowledged int
	started      int
}

// crashEverywhere runs the script up to a number of commits on disk, which holds the first ones already, and crashes
// before every operation on it, or one in every so many.
func crashEverywhere(t *testing.T, disk *testDisk, seed uint64, from, to, every int) []crashed {
	t.Helper()
	var acknowledged, started atomic.Int64
	acknowledged.Store(int64(from))
	started.Store(int64(from))
	var found []crashed
	ops := 0
	disk.hook(func(op diskOp) error {
		// Called under no lock of ours but one at a time is enough: what is found is sorted by nothing.
		if !op.write {
			return nil
		}
		disk.mu.Lock()
		defer disk.mu.Unlock()
		ops++
		if ops%every != 0 {
			return nil
		}
		for _, keep := range []int{0, 50} {
			c := crashed{op: op, acknowledged: int(acknowledged.Load())}
			c.disk = disk.crash(uint64(ops), keep)
			c.started = int(started.Load())
			found = append(found, c)
		}
		return nil
	})
	s, err := Open(small(disk))
	if err != nil {
		t.Fatal(err)
	}
	m := maps.Clone(after(seed, from))
	for i := from + 1; i <= to; i++ {
		b := m.step(seed, i)
		started.Store(int64(i))
		if err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
		acknowledged.Store(int64(i))
	}
	mustClose(t, s)
	disk.hook(nil)
	if s.Metrics().Flushes+uint64(len(disk.files(t, integrity.TableSuffix))) == 0 && to > 20 {
		t.Error("nothing was ever flushed: the script is too short to show anything")
	}
	return found
}

// wantWhole opens a crashed disk and expects every acknowledged commit, and all or nothing of the commit in progress.
func (c *crashed) wantWhole(t *testing.T, seed uint64) (n int) {
	t.Helper()
	s, err := Open(small(c.disk))
	if err != nil {
		t.Fatalf("crash before %s %s, in commit %d: %v", c.op.verb, c.op.name, c.started, err)
	}
	defer mustClose(t, s)
	n, err = commits(s)
	if err != nil || n < c.acknowledged || n > c.started {
		t.Fatalf("crash before %s %s: %d commits, acknowledged %d, started %d, %v", c.op.verb, c.op.name, n,
			c.acknowledged,
			c.started, err)
	}
	if err := after(seed, n).same(s); err != nil {
		t.Fatalf("crash before %s %s, after %d commits: %v", c.op.verb, c.op.name, n, err)
	}
	if n%8 == 0 {
		check(t, s)
	}
	return n
}

func TestNothingAcknowledgedIsLostInACrash(t *testing.T) {
	t.Parallel()
	const seed = 1
	for i, c := range crashEverywhere(t, newDisk(), seed, 0, 28, 1) {
		n := c.wantWhole(t, seed)
		if i%20 != 0 {
			continue
		}
		s := mustOpen(t, c.disk) // and work goes on
		m := maps.Clone(after(seed, n))
		for k := n + 1; k < n+5; k++ {
			if err := s.Commit(m.step(seed, k)); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.same(s); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
	}
}

func TestNothingIsLostInALongRun(t *testing.T) {
	t.Parallel()
	const seed = 2
	for _, c := range crashEverywhere(t, newDisk(), seed, 0, 250, 97) {
		c.wantWhole(t, seed)
	}
}

// A crash in the middle of recovery, at every operation, and once more in the recovery after it.
func TestCrashDuringRecoveryLosesNoAcknowledgedJob(t *testing.T) {
	t.Parallel()
	const seed = 3
	first := crashEverywhere(t, newDisk(), seed, 0, 30, 1)
	for i := range first {
		if i%101 != 0 {
			continue
		}
		n := first[i].reference(t)
		for k, c := range crashEverywhere(t, first[i].disk, seed, n, n, 1) {
			// What the first recovery found of an unacknowledged commit may be lost again.
			c.acknowledged = min(n, first[i].acknowledged)
			m := c.wantWhole(t, seed)
			if k%41 == 0 {
				for _, c := range crashEverywhere(t, c.disk, seed, m, m, 3) {
					c.acknowledged = min(m, c.acknowledged, first[i].acknowledged)
					c.wantWhole(t, seed)
				}
			}
		}
	}
}

// reference is the number of commits that recovery of a copy of the disk finds.
func (c *crashed) reference(t *testing.T) int {
	t.Helper()
	s := mustOpen(t, c.disk.crash(1, 100))
	n, err := commits(s)
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	return n
}

// After a crash, a new log may be missing in GUARD, but GUARD never names a log that was lost.
func TestGuardNamesNoLogLostInACrash(t *testing.T) {
	t.Parallel()
	disk := newDisk()
	if err := atomicfile.MakeDir(disk, testDir); err != nil {
		t.Fatal(err)
	}
	name := disk.PathJoin(testDir, "000007"+integrity.LogSuffix)
	named := 0
	look := func(diskOp) error {
		for seed := range uint64(20) {
			left := disk.crash(seed, 50)
			guard, err := atomicfile.Read(left.MemFS, left.PathJoin(testDir, integrity.GuardFile))
			if err != nil || !strings.Contains(string(guard), "log 7\n") {
				continue
			}
			named++
			if _, err := left.MemFS.Stat(name); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	var g integrity.Guard
	err := g.Write(disk, testDir)
	log, e := disk.Create(name, "")
	g.LogCreated("000007" + integrity.LogSuffix)
	disk.hook(look)
	if err := errors.Join(err, e, g.Write(disk, testDir), log.Close()); err != nil {
		t.Fatal(err)
	}
	_ = look(diskOp{}) // always nil
	if named <= 20 {
		t.Errorf("GUARD named the log in %d folders: no crash was in between", named)
	}
}
