package torture_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// TestKilledAgainAndAgain: whenever the broker is killed, no acknowledged job is lost, and none is handed out after its
// end was acknowledged.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	k := newLedger(t)
	k.started()
	var slowest time.Duration
	inStart, drained := 0, 0
	begin := time.Now()
	n := rounds(t)
	for round := 0; round < n || round < 20*n && k.tooLittle(n); round++ {
		clients := load(b, k, round)
		// The test varies the moment of the kill.
		time.Sleep(30*time.Millisecond + rand.N(700*time.Millisecond))
		b.Crash()
		clients.Wait()    // they end with their connections
		if round%5 == 3 { // another kill while it opens its store
			check(t, b.Spawn())
			time.Sleep(rand.N(60 * time.Millisecond))
			b.Process.Kill()
			inStart++
		}
		start := time.Now()
		b.Restart()
		slowest = max(slowest, time.Since(start))
		k.started()
		drained += k.drain(b)
		k.checkLost(b)
		if t.Failed() {
			t.Fatalf("after round %d of %d", round+1, n)
		}
	}
	t.Logf("at least %d kills under load and %d during the start, in %v: %d jobs submitted, %d acknowledged, %d ends acknowledged, "+
		"%d hand-outs, %d found waiting after a kill, %d looked up as leased, retrying or not due; slowest restart %v",
		n, inStart, time.Since(begin).Round(time.Second), len(k.jobs), k.acks, k.ends, k.out, drained, k.lookedUp,
		slowest.Round(time.Millisecond))
	if k.tooLittle(n) {
		t.Errorf("too little happened before the kills: the test proves nothing")
	}
	code, _ := b.Terminate()
	equal(t, "exit code", code, 0)
	r := harness.Exec(t, harness.Command{Argv: []string{harness.Binary(t), "doctor", b.Data}})
	equal(t, "doctor: "+r.Stdout+r.Stderr, r.Code, 0)
}

// TestStoppedAndContinued stops the whole process for a while, as a debugger or a suspended machine does.
func TestStoppedAndContinued(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	k := newLedger(t)
	k.started()
	clients := load(b, k, 0)
	for range stops {
		time.Sleep(200 * time.Millisecond)
		check(t, b.Signal(syscall.SIGSTOP))
		time.Sleep(time.Second)
		check(t, b.Signal(syscall.SIGCONT))
	}
	before := k.acknowledged()
	harness.Eventually(t, func() string {
		if k.acknowledged() < before+50 {
			return "it does not continue"
		}
		return ""
	})
	b.Crash()
	clients.Wait()
	b.Restart()
	k.started()
	drained := k.drain(b)
	k.checkLost(b)
	t.Logf("%d jobs acknowledged, %d ends acknowledged, %d drained", k.acks, k.ends, drained)
}

// TestRestartedWithAWrongClock builds a broker whose clock is wrong; no setting can do that.
func TestRestartedWithAWrongClock(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for _, shift := range []string{"-48h", "48h"} {
		program := harness.BinaryWith(t, "-X main.clockShift="+shift)
		b := harness.Start(t, harness.Options{})
		k := newLedger(t)
		k.started()
		wq := harness.DialWorkq(t, b)
		for i := range 20 {
			r := k.submitting(fmt.Sprintf("clock-%d", i), "")
			handle, err := harness.DialGearman(t, b).Submit(gearmanclient.SubmitJobBg, waiting, "", r.body)
			check(t, err)
			k.acked(r, handle)
		}
		_, err := wq.Lease(0, waiting)
		check(t, err)
		b.Crash()
		wrong, err := server.NewBroker(t.TempDir(), server.BrokerOptions{Binary: program})
		check(t, err)
		wrong.Data = b.Data
		check(t, wrong.Start())
		t.Cleanup(wrong.Process.Kill)
		other := &harness.Broker{BrokerServer: wrong}
		if got := k.drain(other); got < 19 {
			t.Errorf("%s: %d of 20 jobs were handed out", shift, got)
		}
		k.checkLost(other)
		if !strings.Contains(wrong.Output(), "store opened") {
			t.Error("the start is not logged")
		}
		wrong.Process.Kill()
		// Back to the right time.
		b.Restart()
		k.started()
		k.drain(b)
		k.checkLost(b)
		check(t, os.Remove(program))
	}
}
