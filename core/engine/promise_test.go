package engine_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
)

// clockListener records changes of the clock.
type clockListener struct {
	core.NopListener
	set []time.Duration
}

func (e *clockListener) ClockSet(by time.Duration) { e.set = append(e.set, by) }

// TestClockChangesMoveSchedulesButNotWaits covers what TestLeaseKeepsItsLengthWhenTheClockIsSet does not.
func TestClockChangesMoveSchedulesButNotWaits(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"forward": 2 * time.Hour, "back": -2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clk, listener := &settableClock{Clock: coretest.NewClock()}, &clockListener{}
			d := setup(t, func(o *engine.Options) { o.Clock, o.Listener = clk, listener })
			c, waiter := d.client(core.Workq), d.client(core.Workq)
			due := clk.Now().Add(time.Hour)
			planned := d.one(c, &core.Submit{Job: &core.Job{Queue: "planned", Origin: core.Workq, ReadyAt: due}})
			mortal := d.one(c, &core.Submit{Job: &core.Job{Queue: "mortal", Origin: core.Workq, ExpiresAt: due}})
			d.Do(waiter, []core.Op{&core.Lease{
				Tag: 7, Queues: []string{"empty"}, Holder: core.HeldByNobody, Deadline: clk.Now().Add(3 * time.Second),
			}}, nil)
			state := func(seq uint64) core.State {
				d.Tick()
				r := d.one(c, &core.Inspect{Ref: core.Ref{Seq: seq}})
				if errors.Is(r.Err, core.ErrNotFound) {
					return core.Gone
				}
				return r.Info.State
			}
			want := func(when string, seq uint64, s core.State) {
				t.Helper()
				if got := state(seq); got != s {
					t.Errorf("%s: job %d is %v, not %v", when, seq, got, s)
				}
			}
			clk.set = by
			d.Tick()
			if len(listener.set) != 1 || listener.set[0] != by {
				t.Errorf("the listener got %v, not %v", listener.set, by)
			}
			clk.Advance(3*time.Second - time.Millisecond)
			d.Tick()
			if r := d.Do(waiter, nil, nil); len(r) != 0 {
				t.Errorf("a wait ended before its time: %+v", r)
			}
			clk.Advance(time.Millisecond)
			d.Tick()
			if r := d.Do(waiter, nil, nil); len(r) != 1 || r[0].Tag != 7 || r[0].Kind != core.TimedOut {
				t.Errorf("a wait did not end at its time: %+v", r)
			}
			if by < 0 {
				clk.Advance(due.Sub(clk.Now()) - time.Millisecond)
				want("a millisecond early", planned.Seq, core.Scheduled)
				want("a millisecond early", mortal.Seq, core.Ready)
				clk.Advance(time.Millisecond)
			}
			want("at its time", planned.Seq, core.Ready)
			want("at its time", mortal.Seq, core.Gone)
			if len(listener.set) != 1 {
				t.Errorf("the listener got %v", listener.set)
			}
		})
	}
}

// TestTimesToLiveFollowTheClockOverARestart restarts a store on hosts whose clocks are wrong.
func TestTimesToLiveFollowTheClockOverARestart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		by   time.Duration
		gone bool
	}{"ahead": {48 * time.Hour, true}, "behind": {-48 * time.Hour, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := setup(t, nil)
			r := d.one(d.client(core.Workq), &core.Submit{Job: &core.Job{
				Queue: "q", Origin: core.Workq, ExpiresAt: d.clk.Now().Add(time.Hour),
			}})
			d.Flush()
			d.shutdown()
			d.clk.Advance(test.by)
			d.open(nil)
			d.Tick()
			got := d.one(d.client(core.Workq), &core.Inspect{Ref: core.Ref{Seq: r.Seq}})
			if gone := errors.Is(got.Err, core.ErrNotFound); gone != test.gone {
				t.Errorf("gone: %v, %+v", gone, got)
			}
		})
	}
}

// brokenDir names the store of the process that TestBrokenInvariantEndsTheProcess crashes.
const brokenDir = "ENGINE_TEST_BROKEN_DIR"

// TestBrokenInvariantEndsTheProcess panics under the lock, where an event loop would recover, and checks the store
// afterwards.
func TestBrokenInvariantEndsTheProcess(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(brokenDir); dir != "" {
		breakInvariant(dir)
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), brokenDir+"="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "broken invariant") ||
		strings.Contains(string(out), "still alive") {
		t.Fatalf("%v\n%s", err, out)
	}
	e, err := engine.Open(engine.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Shutdown() }() // only read
	c := e.Open(core.ClientOptions{Protocol: core.Workq, Wake: func() {}})
	r := e.Do(c, []core.Op{&core.Lease{Queues: []string{"q"}, Holder: core.HeldByNobody}}, nil)
	if len(r) != 1 || r[0].Kind != core.Assigned || string(r[0].Job.Body) != "promised" {
		t.Errorf("what was promised is not there: %+v", r)
	}
}

// breakInvariant runs in the process that it ends.
func breakInvariant(dir string) {
	e, err := engine.Open(engine.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	c := e.Open(core.ClientOptions{Protocol: core.Workq, Wake: func() {}})
	e.Do(c, []core.Op{&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Workq, Body: []byte("promised")}}}, nil)
	e.Flush()
	defer func() {
		_ = recover() // as the event loops do
		fmt.Println("still alive")
		os.Exit(1)
	}()
	e.Do(c, []core.Op{&core.Submit{}}, nil) // front-ends never submit without a job: this panics under the lock
}
