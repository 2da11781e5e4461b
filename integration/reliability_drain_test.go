package integration_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/workqclient"
)

// TestUpgradeByDrainingRunsNothingTwice drains with SIGUSR1, waits for the workers, and restarts. Meanwhile results,
// failures and progress are accepted.
func TestUpgradeByDrainingRunsNothingTwice(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	wq, fkt := harness.DialWorkq(t, b), dialFaktory(t, b)
	worker, watcher := harness.DialGearman(t, b), harness.DialGearman(t, b)
	done, tried := wqJob("upgrade", "done"), patient(fktJob("upgrade-faktory", "fails"))
	check(t, wq.Add(done))
	_, err := wq.Lease(0, "upgrade")
	check(t, err)
	check(t, fkt.Push(tried))
	_, err = fkt.Fetch("upgrade-faktory")
	check(t, err)
	handle, err := watcher.Submit(gearmanclient.SubmitJobBg, "upgrade-gearman", "", "x")
	check(t, err)
	check(t, worker.Send(gearmanclient.CanDo, "upgrade-gearman"))
	_, _, _, _, err = worker.Grab(harness.Patience)
	check(t, err)
	check(t, wq.Add(wqJob("upgrade", "waits")))

	check(t, b.Signal(syscall.SIGUSR1))
	awaitReadyz(t, b, http.StatusServiceUnavailable, `{"leased":3,"phase":"draining","ready":false}`)
	check(t, worker.Send(gearmanclient.WorkStatus, handle, "3", "7"))
	harness.Eventually(t, func() string {
		if s := jobStatus(t, watcher, handle); !strings.HasSuffix(s, "3 7") {
			return "progress while draining: " + s
		}
		return ""
	})
	check(t, fkt.Fail(tried.Jid, errors.New("on purpose"), nil))
	awaitReadyz(t, b, http.StatusServiceUnavailable, `"leased":2`)
	check(t, wq.Complete(done.ID, []byte("the result")))
	check(t, worker.Send(gearmanclient.WorkComplete, handle, ""))
	awaitReadyz(t, b, http.StatusServiceUnavailable, `"leased":0`)
	equal(t, "retries", fktState(t, fkt).Data.Sets["retries"], uint64(1))
	check(t, wq.Add(wqJob("upgrade", "late")))
	code, _ := b.Terminate()
	equal(t, "exit code", code, 0)

	b.Restart() // it is not draining any more
	awaitReadyz(t, b, http.StatusOK, `{"ready":true}`)
	awaitTexts(t, func() string { return metricsOf(t, b) }, "\nbroker_draining 0\n")
	wq, fkt = harness.DialWorkq(t, b), dialFaktory(t, b)
	equal(t, "jobs after it", drainInOrder(t, b, "upgrade"), []string{"waits", "late"})
	equal(t, "Gearman jobs after it", len(drainInOrder(t, b, "upgrade-gearman")), 0)
	equal(t, "retries after it", fktState(t, fkt).Data.Sets["retries"], uint64(1))
	r, err := wq.Result(done.ID, 0)
	check(t, err)
	equal(t, "result", r, workqclient.Result{OK: true, Body: []byte("the result")})
}

// TestDrainRequestOverridesTheSetting: a request may say whether new jobs are refused; the signal follows the setting.
func TestDrainRequestOverridesTheSetting(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for _, setting := range []bool{false, true} {
		b := harness.Start(t, harness.Options{Config: fmt.Sprintf("drain_rejects_new_jobs = %v\n", setting)})
		wq := harness.DialWorkq(t, b)
		want := func(what string, refused bool) {
			t.Helper()
			err := wq.Add(wqJob("closed", "x"))
			if got := err != nil && strings.Contains(err.Error(), "Draining"); got != refused {
				t.Errorf("setting %v, %s: %v", setting, what, err)
			}
		}
		check(t, b.Signal(syscall.SIGUSR1))
		awaitReadyz(t, b, http.StatusServiceUnavailable, "draining")
		want("USR1", setting)
		for _, order := range []bool{true, false} {
			status, _ := post(t, b, "/api/v1/drain", fmt.Sprintf(`{"reject_new_jobs": %v}`, order))
			equal(t, "status", status, http.StatusOK)
			want(fmt.Sprint("ordered ", order), order)
		}
		status, _ := post(t, b, "/api/v1/drain", "")
		equal(t, "status", status, http.StatusOK)
		want("an order that does not say", setting)
		check(t, b.Signal(syscall.SIGUSR2))
		awaitReadyz(t, b, http.StatusOK, "true")
		want("after it", false)
		taken := drainInOrder(t, b, "closed")
		equal(t, "what was taken", slices.Compact(taken), []string{"x"})
	}
}
