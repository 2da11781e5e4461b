package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/core/internal/record"
	"broker/core/internal/store"
)

// manual is a Writer without a goroutine, as an engine's Shipper.
type manual struct {
	*Writer

	store *store.Store
	crash bool // what is queued when the engine ends is lost
}

func (m *manual) Begin(s *store.Store, recent engine.Recent) {
	m.store = s
	m.prepare(s, recent)
}

func (m *manual) End() {
	if !m.crash {
		m.shipper.step(context.Background())
	}
	m.shipper.leave()
}

// fixture is an engine with an archive. Both move only when the test says so.
type fixture struct {
	*engine.Engine

	t         *testing.T
	clk       *coretest.Clock
	data, dir string
	options   Options
	ship      *manual
	client    core.ClientID
	broken    bool              // the archive's folder takes nothing
	states    map[uint64]string // contents of the store after each entry
	sealed    map[uint64]core.Instant
}

// newFixture makes an engine with an empty store and an archive that does not exist yet.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	tmp := t.TempDir()
	f := &fixture{
		t: t, clk: coretest.NewClock(), data: filepath.Join(tmp, "data"), dir: filepath.Join(tmp, "archive"),
		states: map[uint64]string{}, sealed: map[uint64]core.Instant{},
	}
	f.options = Options{Dir: f.dir, Scratch: filepath.Join(tmp, "data", "archiving"), Clock: f.clk}
	f.open()
	t.Cleanup(func() { f.close(false) })
	return f
}

func (f *fixture) open() {
	f.t.Helper()
	f.ship = &manual{Writer: New(f.options)}
	f.ship.create = func(path string) (file, error) {
		if f.broken {
			return nil, errFull
		}
		real, err := createFile(path)
		return &flaky{file: real, f: f}, err
	}
	e, err := engine.Open(engine.Options{
		Dir: f.data, Clock: f.clk, Archive: f.ship, Seed: 1, ManualTimers: true, ManualCommits: true,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.Engine = e
	f.client = e.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})
	f.remember()
}

// close stops the engine; after a crash the archive lacks what is queued.
func (f *fixture) close(crash bool) {
	f.t.Helper()
	if f.Engine == nil {
		return
	}
	f.ship.crash = crash
	if err := f.Shutdown(); err != nil {
		f.t.Error(err)
	}
	f.Engine = nil
	s, err := store.Open(store.Options{Dir: f.data, ReadOnly: true})
	if err != nil {
		f.t.Fatal(err)
	}
	f.states[s.Position().Number] = contents(f.t, s)
	if err := s.Close(); err != nil {
		f.t.Error(err)
	}
}

var errFull = errors.New("no space left")

// flaky is a file that accepts only half of the written bytes while the folder is broken.
type flaky struct {
	file

	f *fixture
}

func (x *flaky) Write(b []byte) (int, error) {
	if !x.f.broken {
		return x.file.Write(b)
	}
	n, _ := x.file.Write(b[:len(b)/2])
	return n, errFull
}

// do plays operations, commits them, and remembers the contents of the store.
func (f *fixture) do(ops ...core.Op) []core.Reply {
	f.t.Helper()
	replies := f.Do(f.client, ops, nil)
	f.Flush()
	f.remember()
	f.clk.Advance(time.Millisecond)
	return replies
}

func (f *fixture) remember() {
	f.t.Helper()
	at := f.ship.store.Position()
	f.states[at.Number], f.sealed[at.Number] = contents(f.t, f.ship.store), at.At
}

// push submits jobs, each with its commit.
func (f *fixture) push(n int) {
	f.t.Helper()
	for range n {
		f.do(&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman, Body: []byte("body")}})
	}
}

// step lets the shipper work, until a base copy that it has begun is complete.
func (f *fixture) step() {
	f.t.Helper()
	s := &f.ship.shipper
	s.step(context.Background())
	for s.copying != nil && s.copying.done != nil {
		<-s.copying.done
		s.step(context.Background())
	}
}

// caughtUp checks that everything is in the archive, after a pause if something has failed.
func (f *fixture) caughtUp() {
	f.t.Helper()
	var st core.Archive
	for range 4 {
		f.step()
		if st = f.ship.Status(); st.Lag == 0 && st.Queued == 0 && st.Error == "" {
			return
		}
		f.clk.Advance(longestPause)
	}
	f.t.Fatalf("the archive is behind: %+v", st)
}

// restore restores a moment, and wants the store as it was after the last entry that was restored.
func (f *fixture) restore(moment core.Instant) *Restored {
	f.t.Helper()
	to := filepath.Join(f.t.TempDir(), "restored")
	r, err := Restore(context.Background(), RestoreOptions{From: f.dir, To: to, At: moment})
	if err != nil {
		f.t.Fatalf("restore %s: %v", moment.Time().Format(timeFormat), err)
	}
	s, err := store.Open(store.Options{Dir: to})
	if err != nil {
		f.t.Fatal(err)
	}
	if at := s.Position(); at.Number != r.Number || at.At != r.At || moment != 0 && at.At > moment {
		f.t.Errorf("restored %s: the store is at %+v, the report says %+v", moment.Time().Format(timeFormat), at, r)
	}
	want, known := f.states[r.Number]
	if got := contents(f.t, s); !known || got != want {
		f.t.Errorf("restored entry %d (known: %v):\n%s\nwant\n%s", r.Number, known, got, want)
	}
	if err := s.Close(); err != nil {
		f.t.Error(err)
	}
	x, err := engine.Inspect(context.Background(), to, nil, func(uint64) {})
	if err != nil || !x.Sound() {
		f.t.Errorf("the restored store is not sound: %+v, %v", x, err)
	}
	return r
}

// contents returns everything in a store.
func contents(t *testing.T, s *store.Store) string {
	t.Helper()
	var b strings.Builder
	must := func(err error) {
		if err != nil && !errors.Is(err, store.ErrMissing) {
			t.Fatal(err)
		}
	}
	add := func(kind string, v any) {
		text, err := json.Marshal(v)
		must(err)
		fmt.Fprintf(&b, "%s %s\n", kind, text)
	}
	var seqs []uint64
	must(s.Scan(context.Background(), nil, func(r *record.Record) error {
		seqs = append(seqs, r.Job.Seq)
		add("status", r.Status)
		return nil
	}))
	for _, seq := range seqs {
		j, err := s.Job(seq)
		must(err)
		add("job", j)
		fail, err := s.Failure(seq)
		must(err)
		add("failure", fail)
		out, err := s.Outcome(seq)
		must(err)
		add("outcome", out)
		line, err := s.Timeline(seq)
		must(err)
		add("timeline", line)
	}
	must(s.ScanMeta("", func(name string, value []byte) error {
		add("meta "+name, value)
		return nil
	}))
	must(s.ScanDocuments("", "", func(name string, value []byte) bool {
		add("document "+name, value)
		return true
	}))
	return b.String()
}

// randomOp returns an operation of a client or a worker.
func randomOp(rng *rand.Rand, held *[]uint64) core.Op {
	queue := fmt.Sprintf("q%d", rng.IntN(3))
	switch n := rng.IntN(10); {
	case n < 4:
		j := &core.Job{
			Queue: queue, Origin: core.Faktory, Body: []byte(strings.Repeat("b", rng.IntN(3000))), MaxFails: 3,
			LeaseFor: time.Minute,
		}
		j.Priority = int64(rng.IntN(3))
		return &core.Submit{Job: j}
	case n < 7:
		return &core.Lease{Queues: []string{queue}, Holder: core.HeldByWorker, Worker: "w"}
	case len(*held) == 0:
		return &core.WriteDocuments{Documents: []core.MetaEntry{{
			Name: "d" + queue, Value: []byte(fmt.Sprint(rng.Uint32())),
		}}}
	}
	i := rng.IntN(len(*held))
	ref := core.Ref{Seq: (*held)[i]}
	*held = append((*held)[:i], (*held)[i+1:]...)
	if rng.IntN(3) == 0 {
		return &core.Fail{Ref: ref, Failure: &core.Failure{Message: "no"}, Authority: core.ByLeased}
	}
	return &core.Complete{Ref: ref, Result: []byte("done"), Authority: core.ByLeased}
}
