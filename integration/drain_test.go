package integration_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/workqclient"
)

// awaitReadyz waits until /readyz returns a status and a text.
func awaitReadyz(t *testing.T, b *harness.Broker, status int, words string) {
	t.Helper()
	harness.Eventually(t, func() string {
		got, body, err := b.Get("/readyz")
		if err != nil || got != status || !strings.Contains(body, words) {
			return body
		}
		return ""
	})
}

func TestDrainingHandsOutNothingAndTakesResults(t *testing.T) {
	t.Parallel()
	b := start(t)
	gearman, wq, fkt := harness.DialGearman(t, b), harness.DialWorkq(t, b), dialFaktory(t, b)
	held := wqJob("drained", "held")
	check(t, wq.Add(held))
	_, err := wq.Lease(0, "drained")
	check(t, err)
	check(t, wq.Add(wqJob("drained", "waits")))
	for i, on := range []func(){
		func() { check(t, b.Signal(syscall.SIGUSR1)) },
		func() {
			status, answer := post(t, b, "/api/v1/drain", "")
			equal(t, "drain", status, http.StatusOK)
			equal(t, "answer", strings.TrimSpace(answer), `{"draining":true,"leased":0}`)
		},
	} {
		on()
		awaitReadyz(t, b, http.StatusServiceUnavailable, `"phase":"draining"`)
		_, err = wq.Lease(0, "drained")
		wantIs(t, err, workqclient.ErrTimeout)
		job, err := fkt.Fetch("drained") // waits for two seconds
		check(t, err)
		equal(t, "fetched while draining", job == nil, true)
		check(t, gearman.Send(gearmanclient.CanDo, "drained"))
		check(t, gearman.Send(gearmanclient.GrabJob))
		_, err = gearman.Expect(gearmanclient.NoJob, harness.Patience)
		check(t, err)
		if i == 0 {
			check(t, wq.Complete(held.ID, []byte("taken")))
		}
		check(t, wq.Add(wqJob("drained", "more"))) // new jobs are accepted by default
		awaitTexts(t, func() string { return metricsOf(t, b) }, "\nbroker_draining 1\n")
		check(t, b.Signal(syscall.SIGUSR2))
		awaitReadyz(t, b, http.StatusOK, "true")
	}
	equal(t, "log lines with the field of the API", strings.Count(b.Output(), `"reject_new_jobs":false`), 1)
	equal(t, "jobs after it", len(drainInOrder(t, b, "drained")), 3)
}

func TestDrainingMayRefuseNewJobs(t *testing.T) {
	t.Parallel()
	b := harness.Start(t, harness.Options{Config: "drain_rejects_new_jobs = true\n"})
	gearman, wq, fkt := harness.DialGearman(t, b), harness.DialWorkq(t, b), dialFaktory(t, b)
	parked := harness.DialWorkq(t, b)
	check(t, parked.Send([]byte("lease closed 120000\r\n")))
	status, _ := post(t, b, "/api/v1/drain", "")
	equal(t, "drain", status, http.StatusOK)
	if err := wq.Add(wqJob("closed", "x")); err == nil || !strings.Contains(err.Error(), "Draining") {
		t.Errorf("workq: %v", err)
	}
	if err := fkt.Push(fktJob("closed", 1)); err == nil || !strings.Contains(err.Error(), "draining") {
		t.Errorf("faktory: %v", err)
	}
	check(t, gearman.Send(gearmanclient.SubmitJobBg, "closed", "", "x"))
	p, err := gearman.Expect(gearmanclient.Error, harness.Patience)
	check(t, err)
	equal(t, "gearman", string(p.Data), "QUEUE_ERROR\x00Server is draining")
	// The request overrides the setting.
	post(t, b, "/api/v1/drain", `{"reject_new_jobs":false}`)
	check(t, wq.Add(wqJob("closed", "x")))
	status, answer := post(t, b, "/api/v1/resume", "")
	equal(t, "resume: "+answer, status, http.StatusOK)
	line, err := parked.Line(harness.Patience)
	check(t, err)
	equal(t, "the lease that waited", line, "+OK 1")
}
