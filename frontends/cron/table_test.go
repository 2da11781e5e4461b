package cron

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/crontab"
	"broker/core/engine"
)

// fixture is a table on a real engine, whose disk outlives both.
type fixture struct {
	t       *testing.T
	clock   *coretest.Clock
	options engine.Options
	engine  *engine.Engine
	table   *Table
	client  core.ClientID
	entries []Entry
	told    []string
	prepare func(unit []byte) (*core.Job, error)
}

func setup(t *testing.T, specs ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: coretest.NewClock()}
	f.options = engine.Options{Dir: "data", FS: engine.MemoryFS(), Clock: f.clock, Seed: 1, ManualTimers: true}
	f.prepare = func(unit []byte) (*core.Job, error) {
		return &core.Job{Queue: "q", Body: unit, Format: core.Args, Origin: core.Faktory}, nil
	}
	f.entries = entries(t, specs...)
	f.start()
	t.Cleanup(f.stop)
	return f
}

// entries makes one entry of each schedule; its job says which.
func entries(t *testing.T, specs ...string) []Entry {
	t.Helper()
	all := make([]Entry, len(specs))
	for i, spec := range specs {
		s, err := crontab.Parse(spec, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = Entry{Spec: spec, Schedule: s, Type: "T", Unit: fmt.Appendf(nil, "[%q]", spec)}
	}
	return all
}

func (f *fixture) start() {
	f.t.Helper()
	e, err := engine.Open(f.options)
	if err != nil {
		f.t.Fatal(err)
	}
	f.engine = e
	f.client = e.Open(core.ClientOptions{Protocol: core.Faktory, Wake: func() {}})
	f.table = New(Options{
		Broker: e, Listener: f,
		Prepare: func(unit []byte) (*core.Job, error) { return f.prepare(unit) },
	})
	f.table.Load(f.entries)
}

func (f *fixture) stop() {
	f.t.Helper()
	f.table.Close()
	if err := f.engine.Shutdown(); err != nil {
		f.t.Error(err)
	}
}

// downFor stops the broker and starts it again after a time.
func (f *fixture) downFor(d time.Duration) {
	f.t.Helper()
	f.stop()
	f.clock.Advance(d)
	f.start()
}

// Submitted implements Listener, as do the next two.
func (f *fixture) Submitted(e Entry, due core.Instant, seq uint64) {
	if seq == 0 {
		f.t.Error("a job without a number")
	}
	f.told = append(f.told, "submitted "+e.Spec+" "+clockTime(due))
}

func (f *fixture) Refused(e Entry, due core.Instant, err error) {
	f.told = append(f.told, "refused "+e.Spec+" "+clockTime(due)+" "+err.Error())
}

func (f *fixture) Missed(e Entry, first core.Instant) {
	f.told = append(f.told, "missed "+e.Spec+" "+clockTime(first))
}

func clockTime(at core.Instant) string { return at.Time().Format("15:04:05") }

// pass lets time pass, in steps of what the table asks for.
func (f *fixture) pass(d time.Duration) {
	f.t.Helper()
	for end := f.clock.Now().Add(d); f.clock.Now() < end; {
		next := f.table.Tick()
		if next == 0 || next > end {
			next = end
		}
		if next <= f.clock.Now() {
			f.t.Fatalf("the table wants to be called at %s and it is %s", clockTime(next), clockTime(f.clock.Now()))
		}
		f.clock.Advance(next.Sub(f.clock.Now()))
		f.engine.Tick()
	}
	f.table.Tick()
}

// want compares what the table told since the last call.
func (f *fixture) want(lines ...string) {
	f.t.Helper()
	if !slices.Equal(f.told, lines) {
		f.t.Fatalf("told\n%s\nwant\n%s", strings.Join(f.told, "\n"), strings.Join(lines, "\n"))
	}
	f.told = nil
}

// jobs takes all jobs out of the queue and returns their bodies.
func (f *fixture) jobs() []string {
	f.t.Helper()
	var bodies []string
	for {
		r := f.do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByNobody})
		if r.Kind != core.Assigned {
			return bodies
		}
		bodies = append(bodies, string(r.Job.Body))
		f.do(&core.Complete{Ref: core.Ref{Seq: r.Seq}, Authority: core.ByAnyone})
	}
}

func (f *fixture) do(op core.Op) core.Reply {
	f.t.Helper()
	replies := f.engine.Do(f.client, []core.Op{op}, nil)
	if len(replies) != 1 {
		f.t.Fatalf("%T: %d replies", op, len(replies))
	}
	return replies[0]
}

func TestJobsComeWhenTheirTimeDoes(t *testing.T) {
	t.Parallel()
	f := setup(t, "*/5 * * * *", "0 0 2 1 *", "@every 2m")
	f.pass(2*time.Minute - time.Microsecond)
	f.want()
	f.pass(8*time.Minute + time.Microsecond)
	f.want(
		"submitted @every 2m 00:02:00", "submitted @every 2m 00:04:00", "submitted */5 * * * * 00:05:00",
		"submitted @every 2m 00:06:00", "submitted @every 2m 00:08:00", "submitted */5 * * * * 00:10:00",
		"submitted @every 2m 00:10:00",
	)
	if got := len(f.jobs()); got != 7 {
		t.Errorf("%d jobs", got)
	}
	rows := f.table.Entries()
	if got := rows[0].Next.Time().Format(time.DateTime); got != "2030-01-01 00:15:00" {
		t.Errorf("next at %s", got)
	}
	if clockTime(rows[0].LastRun) != "00:10:00" || rows[1].LastRun != 0 {
		t.Errorf("last runs %v and %v", rows[0].LastRun, rows[1].LastRun)
	}
}

func TestCallingEarlyAndOftenChangesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t, "* * * * *")
	for range 90 {
		f.clock.Advance(time.Second)
		f.table.Tick()
		f.table.Tick()
	}
	f.want("submitted * * * * * 00:01:00")
}

func TestRestartNeitherDoublesNorForgets(t *testing.T) {
	t.Parallel()
	f := setup(t, "*/5 * * * *")
	f.pass(5 * time.Minute)
	f.downFor(0) // within the same instant
	f.pass(time.Minute)
	f.want("submitted */5 * * * * 00:05:00")
	f.clock.Advance(3*time.Minute + 50*time.Second)
	f.downFor(20 * time.Second) // over the next
	f.pass(time.Minute)
	f.want("submitted */5 * * * * 00:10:00")
	if got := len(f.jobs()); got != 2 {
		t.Errorf("%d jobs", got)
	}
}

func TestEntryThatWasNeverDueIsMadeUpForToo(t *testing.T) {
	t.Parallel()
	f := setup(t, "0 1 * * *")
	f.clock.Advance(59*time.Minute + 59*time.Second)
	f.downFor(2 * time.Second)
	f.pass(time.Second)
	f.want("submitted 0 1 * * * 01:00:00")
}

func TestOldRunsAreLeftOut(t *testing.T) {
	t.Parallel()
	f := setup(t, "* * * * *", "0 1 * * *")
	f.downFor(7*time.Hour + 30*time.Second)
	f.pass(10 * time.Second)
	f.want("missed * * * * * 00:01:00", "submitted * * * * * 07:00:00", "missed 0 1 * * * 01:00:00")
	f.pass(20 * time.Second)
	f.want("submitted * * * * * 07:01:00")
	f.pass(18 * time.Hour)
	if got := f.told[len(f.told)-1]; !strings.HasPrefix(got, "submitted") || !slices.Contains(f.told, "submitted 0 1 * * * 01:00:00") {
		t.Errorf("the next day: %s", got)
	}
}

func TestGraceHasAnEdge(t *testing.T) {
	t.Parallel()
	for late, want := range map[time.Duration]string{
		Grace:                    "submitted 0 1 * * * 01:00:00",
		Grace + time.Microsecond: "missed 0 1 * * * 01:00:00",
	} {
		f := setup(t, "0 1 * * *")
		f.downFor(time.Hour + late)
		f.table.Tick()
		f.want(want)
	}
}

func TestReloadKeepsWhatIsEqual(t *testing.T) {
	t.Parallel()
	f := setup(t, "*/5 * * * *", "0 1 * * *", "0 1 * * *")
	f.pass(5 * time.Minute)
	f.want("submitted */5 * * * * 00:05:00")
	if got := f.table.Load(entries(t, "0 1 * * *", "*/5 * * * *", "*/7 * * * *")); got != (Changes{Added: 1, Removed: 1, Kept: 2}) {
		t.Errorf("changes: %+v", got)
	}
	f.pass(3 * time.Minute)
	f.want("submitted */7 * * * * 00:07:00")
	if got := f.table.Load(nil); got != (Changes{Removed: 3}) {
		t.Errorf("changes: %+v", got)
	}
	if next := f.table.Tick(); next != 0 {
		t.Errorf("an empty table wants to be called at %s", clockTime(next))
	}
	f.clock.Advance(time.Hour)
	f.table.Load(entries(t, "*/5 * * * *")) // new again: nothing to make up for
	f.table.Tick()
	f.want()
}

func TestNotesOfRemovedEntriesGoAway(t *testing.T) {
	t.Parallel()
	f := setup(t, "*/5 * * * *", "0 1 * * *")
	gone := markPrefix + keyOf(f.entries[0]) + "-1"
	if f.do(&core.ReadMeta{Name: gone}).Data == nil {
		t.Fatal("no note of an entry")
	}
	f.entries = f.entries[1:]
	f.downFor(time.Minute)
	if got := f.do(&core.ReadMeta{Name: gone}).Data; got != nil {
		t.Errorf("the note of an entry that is no more: %s", got)
	}
	f.table.Load(nil)
	if got := f.do(&core.ReadMeta{Name: keysMark}).Data; got != nil {
		t.Errorf("the list of an empty table: %s", got)
	}
}

func TestEqualEntriesBothRun(t *testing.T) {
	t.Parallel()
	f := setup(t, "* * * * *", "* * * * *")
	f.pass(time.Minute)
	f.want("submitted * * * * * 00:01:00", "submitted * * * * * 00:01:00")
	f.downFor(time.Second)
	f.pass(time.Second)
	f.want()
}

func TestFullQueueIsTriedAgain(t *testing.T) {
	t.Parallel()
	f := setup(t, "0 1 * * *")
	f.do(&core.CreateQueue{Queue: "q"})
	f.do(&core.LimitQueue{Queue: "q", Limits: core.Limits{MaxNormal: 1}})
	f.do(&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Workq}})
	f.pass(time.Hour + 30*time.Second)
	f.want("refused 0 1 * * * 01:00:00 queue is full")
	f.jobs()
	f.pass(time.Second)
	f.want("submitted 0 1 * * * 01:00:00")
	f.do(&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Workq}})
	if got := len(f.jobs()); got != 1 {
		t.Fatalf("%d jobs", got)
	}
	f.do(&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Workq}})
	f.pass(25 * time.Hour)
	f.want("refused 0 1 * * * 01:00:00 queue is full", "missed 0 1 * * * 01:00:00")
}

func TestUniqueJobThatIsStillThereIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	f := setup(t, "* * * * *")
	f.prepare = func([]byte) (*core.Job, error) {
		return &core.Job{Queue: "q", Origin: core.Faktory, UniqueKey: "k", Unique: core.UniqueRefuse}, nil
	}
	f.pass(2*time.Minute + 30*time.Second)
	f.want("submitted * * * * * 00:01:00", "refused * * * * * 00:02:00 a live job holds this unique key")
	f.jobs()
	f.downFor(10 * time.Second)
	f.pass(time.Second)
	f.want()
}

func TestDrainingBrokerIsTriedAgainEachSecondForAMinute(t *testing.T) {
	t.Parallel()
	f := setup(t, "0 1 * * *")
	f.do(&core.Drain{On: true, RefuseJobs: true})
	f.pass(time.Hour)
	for range 60 {
		if next := f.table.Tick(); next != f.clock.Now().Add(time.Second) {
			t.Fatalf("at %s it wants to be called at %s", clockTime(f.clock.Now()), clockTime(next))
		}
		f.clock.Advance(time.Second)
	}
	f.want("refused 0 1 * * * 01:00:00 " + core.ErrDraining.Error())
	f.do(&core.Drain{})
	f.table.Tick()
	f.want("submitted 0 1 * * * 01:00:00")
	f.do(&core.Drain{On: true, RefuseJobs: true})
	f.pass(24*time.Hour + time.Second)
	f.do(&core.Drain{})
	f.table.Tick()
	f.want("refused 0 1 * * * 01:00:00 "+core.ErrDraining.Error(), "missed 0 1 * * * 01:00:00")
}

// A refusal that says something of the broker may be over soon; one that is about the job is not.
func TestRefusalsThatMayBeOverSoonAreTriedAgain(t *testing.T) {
	t.Parallel()
	for err, again := range map[error]bool{
		core.ErrFull: true, core.ErrDiskFull: true, core.ErrDraining: true, core.ErrStopped: true,
		core.ErrNotUnique: false, core.ErrDuplicate: false, core.ErrInvalid: false,
	} {
		if got := worthAnotherTry(fmt.Errorf("refused: %w", err)); got != again {
			t.Errorf("%v is tried again: %v", err, got)
		}
	}
}

func TestEntryWithAnotherJobIsANewOne(t *testing.T) {
	t.Parallel()
	f := setup(t, "0 1 * * *")
	f.stop()
	f.clock.Advance(time.Hour + time.Second) // due a second ago, and would be made up for
	f.entries[0].Unit = []byte(`["other"]`)
	f.start()
	f.table.Tick()
	f.want()
	if got := f.table.Entries()[0].Next.Time().Format(time.DateTime); got != "2030-01-02 01:00:00" {
		t.Errorf("next at %s", got)
	}
	same := f.entries[0]
	same.Unit = []byte(`["a third"]`)
	if got := f.table.Load([]Entry{same}); got != (Changes{Added: 1, Removed: 1}) {
		t.Errorf("changes: %+v", got)
	}
}

func TestJobThatCannotBePreparedIsReported(t *testing.T) {
	t.Parallel()
	f := setup(t, "* * * * *")
	f.prepare = func([]byte) (*core.Job, error) { return nil, errors.New("no such job") }
	f.pass(2 * time.Minute)
	f.want("refused * * * * * 00:01:00 no such job", "refused * * * * * 00:02:00 no such job")
}

func TestClockThatWasWrongDoesNotSilenceEntries(t *testing.T) {
	t.Parallel()
	f := setup(t, "* * * * *")
	f.clock.Advance(365 * 24 * time.Hour)
	f.table.Tick()
	f.told = nil
	f.clock.Advance(-365 * 24 * time.Hour)
	f.pass(time.Minute)
	f.want("submitted * * * * * 00:01:00")
	f.clock.Advance(365 * 24 * time.Hour)
	f.table.Tick()
	f.told = nil
	f.downFor(-365 * 24 * time.Hour)
	f.pass(time.Minute)
	f.want("submitted * * * * * 00:02:00")
}
