package machine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/internal/machine"
)

// fan is a machine with a job that many others wait for, and its store.
type fan struct {
	*testing.T
	clk   *coretest.Clock
	opts  machine.Options
	m     *machine.Machine
	store *memStore
	jobs  uint64
}

// newFan makes a job, a parent of it, and jobs that wait for one of them or for each other. The machine touches about
// as many jobs and links at once as step says.
func newFan(t *testing.T, seed uint64, step int) *fan {
	f := &fan{T: t, clk: coretest.NewClock(), store: newMemStore()}
	f.opts = machine.Options{
		Persist: true, Await: true, DefaultLease: time.Minute, CacheBytes: 1 << 20, LinkStep: step,
		PoisonAfter: 1,
		StartedAt:   f.clk.Now(), Random: rand.New(rand.NewPCG(1, 1)),
	}
	f.m = machine.New(f.opts)
	random := rand.New(rand.NewPCG(seed, 1))
	f.submit(&core.Job{RetainFor: time.Hour})
	f.do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"})
	f.submit(&core.Job{Parent: 1})
	f.submit(&core.Job{})
	for range 24 {
		j := &core.Job{OnBroken: core.OnBroken(random.IntN(4))}
		switch kind := random.IntN(5); {
		case kind == 0 || seed%4 == 0: // children only
			j.Parent = 2
		case kind == 1:
			j.After = []uint64{1}
		case kind == 2:
			j.After = []uint64{2, 3}
		case kind == 3:
			j.After = []uint64{2, 4 + random.Uint64N(f.jobs-2)}
		default:
			j.After = []uint64{2}
		}
		j.After = slices.DeleteFunc(j.After, func(seq uint64) bool { return seq > f.jobs })
		f.submit(j)
	}
	f.do(&core.Complete{Ref: core.Ref{Seq: 1}, Authority: core.ByAnyone})
	f.commit()
	return f
}

func (f *fan) submit(j *core.Job) {
	j.Queue, j.Origin = "q", core.Faktory
	f.do(&core.Submit{Job: j})
	f.jobs++
}

// do does an operation and checks the machine.
func (f *fan) do(op core.Op) core.Reply {
	f.Helper()
	c := f.m.OpenClient(0, core.ClientOptions{})
	f.store.apply(f.m, f.clk.Now(), c, op)
	r := f.m.Take(c, nil)[0]
	f.m.CloseClient(f.clk.Now(), c)
	f.check()
	return r
}

func (f *fan) check() {
	f.Helper()
	if err := f.m.Check(); err != nil {
		f.Fatal(err)
	}
}

func (f *fan) commit() {
	f.Helper()
	var s machine.Sealed
	f.m.Seal(&s)
	if _, err := f.store.put(&s.Batch); err != nil {
		f.Fatal(err)
	}
	f.m.Committed(&s)
}

// crash starts a machine on what is stored.
func (f *fan) crash() {
	f.Helper()
	f.opts.StartedAt = f.clk.Now()
	f.m = machine.New(f.opts)
	if err := f.store.load(f.m, f.clk.Now()); err != nil {
		f.Fatal(err)
	}
	f.check()
}

// steps does at most n steps, and reports whether there are more.
func (f *fan) steps(n int) (more bool) {
	f.Helper()
	for more = true; more && n > 0; n-- {
		more = f.m.Tick(f.clk.Now(), 100)
		f.check()
	}
	return more
}

// shows lists what a client sees of all jobs.
func (f *fan) shows() string {
	f.Helper()
	var b strings.Builder
	for seq := range f.jobs {
		i := f.do(&core.Inspect{Ref: core.Ref{Seq: seq + 1}, Brief: true}).Info
		if i == nil {
			fmt.Fprintf(&b, "%d is gone\n", seq+1)
			continue
		}
		fmt.Fprintf(&b, "%d %v waits for %v, broken %v, failed %v\n", i.Seq, i.State, i.Waiting, i.Broken, i.Fails)
	}
	return b.String()
}

// ends are the ways in which job 2 ends.
func ends() map[string]core.Op {
	ref := core.Ref{Seq: 2}
	return map[string]core.Op{
		"done":      &core.Complete{Ref: ref, Authority: core.ByAnyone},
		"failed":    &core.Fail{Ref: ref, Authority: core.ByAnyone, Final: true},
		"dead":      &core.Bury{Ref: ref},
		"cancelled": &core.Cancel{Ref: ref},
	}
}

// A job with many dependents ends in steps. After each number of steps, a second machine is started on what is stored:
// it must come to the same states as a machine that does everything at once.
func TestCrashBetweenStepsLosesNoDependent(t *testing.T) {
	t.Parallel()
	most := 0
	for name, end := range ends() {
		for seed := range uint64(20) {
			atOnce := newFan(t, seed, 1<<30)
			atOnce.do(end)
			want := atOnce.shows()
			for step := 1; step <= 7; step += 3 {
				for steps := 0; ; steps++ {
					f := newFan(t, seed, step)
					f.do(end)
					f.commit()
					more := f.steps(steps)
					if most = max(most, steps); steps > 0 && steps%2 == 0 {
						f.commit() // otherwise the steps are lost in the crash
					}
					if f.crash(); f.shows() != want {
						t.Fatalf("%s, seed %d, crash after %d steps of %d: there is\n%s\nwant\n%s",
							name, seed, steps, step, f.shows(), want)
					}
					if f.commit(); len(f.left()) > 0 {
						t.Fatalf("%s, seed %d: entries %v stay", name, seed, f.left())
					}
					if !more && steps > 0 {
						break
					}
				}
			}
		}
	}
	if most < 20 {
		t.Errorf("at most %d steps", most)
	}
}

// left lists the entries of ends that are not over.
func (f *fan) left() (names []string) {
	for name := range f.store.meta {
		if strings.HasPrefix(name, "core/ended/") {
			names = append(names, name)
		}
	}
	return names
}

func TestATickSaysThatItHasLeftSteps(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		f := newFan(t, seed, 1)
		r := f.do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w", LeaseFor: time.Second})
		if r.Job.Seq != 2 {
			t.Fatalf("leased %+v", r)
		}
		f.clk.Advance(time.Second)
		for f.m.Tick(f.clk.Now(), 100) {
			f.check()
		}
		if next := f.m.NextDeadline(); next <= f.clk.Now() {
			t.Errorf("seed %d: nothing is left at %v, and something is due at %v", seed, f.clk.Now(), next)
		}
	}
}
