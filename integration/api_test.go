package integration_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/workqclient"
)

// api sends a request to the HTTP API; it must succeed.
func api(t *testing.T, b *harness.Broker, method, path string, body ...string) map[string]any {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+b.HTTP+"/api/v1"+path,
		strings.NewReader(strings.Join(body, "")))
	check(t, err)
	req.Close = true
	req.SetBasicAuth("", b.Password)
	resp, err := http.DefaultClient.Do(req)
	check(t, err)
	defer func() { _ = resp.Body.Close() }() // it was read
	text, err := io.ReadAll(resp.Body)
	check(t, err)
	var answer map[string]any
	if len(text) > 0 {
		check(t, json.Unmarshal(text, &answer))
	}
	if resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %v", method, path, resp.StatusCode, answer)
	}
	return answer
}

// fleetWorker is the Faktory worker of a list that has connections too.
func fleetWorker(t *testing.T, b *harness.Broker) map[string]any {
	t.Helper()
	for _, w := range api(t, b, "GET", "/workers?protocol=faktory")["workers"].([]any) {
		if row := w.(map[string]any); row["id"] == "worker:fleet-1" {
			return row
		}
	}
	t.Fatal("the worker is not listed")
	return nil
}

// TestWorkersAreQuietedAndTerminatedOverHTTP is not parallel: the client reads the worker id from a global variable, so
// that clients of other tests would become workers too.
func TestWorkersAreQuietedAndTerminatedOverHTTP(t *testing.T) {
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Password: "pw"})
	faktory.RandomProcessWid = "fleet-1"
	defer func() { faktory.RandomProcessWid = "" }()
	w, err := harness.OpenFaktory(b, harness.Patience)
	check(t, err)
	defer func() { _ = w.Close() }() // the test is over
	row := fleetWorker(t, b)
	host, err := os.Hostname()
	check(t, err)
	for member, want := range map[string]any{
		"name": "fleet-1", "state": "running", "hostname": host, "pid": os.Getpid(), "labels": "[golang]",
		"connections": 1,
	} {
		equal(t, member, fmt.Sprint(row[member]), fmt.Sprint(want))
	}
	if remote := fmt.Sprint(row["address"]); !strings.HasPrefix(remote, "127.0.0.1:") {
		t.Errorf("address is %s", remote)
	}
	for _, order := range []string{"quiet", "terminate"} {
		api(t, b, "POST", "/workers/fleet-1/"+order)
		state, err := w.Beat()
		check(t, err)
		equal(t, "told by BEAT", state, fmt.Sprintf(`{"state":%q}`, order))
	}
	_, err = w.Generic(`BEAT {"wid":"fleet-1","rss_kb":77}`)
	check(t, err)
	row = fleetWorker(t, b)
	equal(t, "after it", fmt.Sprint(row["state"], " ", row["rss_bytes"]), "terminate 78848")
	check(t, w.Push(fktJob("unseen", 1)))
	if job, err := w.Fetch("unseen"); job != nil || err != nil {
		t.Errorf("a terminating worker fetched %v, %v", job, err)
	}
}

func TestQueueRemovedOverHTTPIsGoneInEveryProtocol(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	d := open(t, b)
	handle, wq, fkt := d.submitEach(t, "removed", time.Minute)
	waiting := harness.DialGearman(t, b)
	_, err := waiting.Submit(gearmanclient.SubmitJob, "removed", "", "x")
	check(t, err)
	api(t, b, "PATCH", "/queues/removed", `{"paused":true}`)
	equal(t, "paused", api(t, b, "GET", "/queues/removed")["paused"], any(true))
	equal(t, "removed", fmt.Sprint(api(t, b, "DELETE", "/queues/removed")["removed"]), "4")
	_, err = waiting.Expect(gearmanclient.WorkFail, harness.Patience)
	check(t, err)
	if _, there := fktState(t, d.faktory).Data.Queues["removed"]; there {
		t.Error("INFO lists a removed queue")
	}
	equal(t, "status of a removed job", jobStatus(t, d.gearman, handle), "0 0 0 0")
	_, err = d.workq.InspectJob(wq.ID)
	wantIs(t, err, workqclient.ErrNotFound)
	check(t, d.faktory.Push(fkt)) // the jid may be used again
	api(t, b, "DELETE", "/jobs/"+fkt.Jid)
	api(t, b, "DELETE", "/queues/removed")
	b.Crash()
	b.Restart()
	equal(t, "queues after a restart", len(api(t, b, "GET", "/queues")["queues"].([]any)), 0)
}
