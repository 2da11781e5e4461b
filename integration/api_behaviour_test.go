package integration_test

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
)

// repeated submits a job under an idempotency key and returns its id.
func repeated(t *testing.T, b *harness.Broker, key, body string) (status int, id string) {
	t.Helper()
	c := apiCase{method: "POST", path: "/jobs", body: body, header: map[string]string{"Idempotency-Key": key}}
	resp, text := c.ask(t, b)
	var job struct{ ID, Code string }
	check(t, json.Unmarshal(text, &job))
	return resp.StatusCode, job.ID + job.Code
}

func TestARepeatedSubmissionIsOneJobAlsoAfterACrash(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	_, first := repeated(t, b, "order-17", `{"queue": "mail", "args": [17]}`)
	_, again := repeated(t, b, "order-17", `{"queue": "mail", "args": [17]}`)
	equal(t, "repeated", again, first)
	_, other := repeated(t, b, "order-18", `{"queue": "mail", "args": [17]}`)
	b.Crash()
	b.Restart()
	_, again = repeated(t, b, "order-17", `{"queue": "mail", "args": [17]}`)
	equal(t, "repeated after a crash", again, first)
	status, code := repeated(t, b, "order-17", `{"queue": "mail", "args": [18]}`)
	equal(t, "another job with the key", fmt.Sprint(status, code), "422idempotency_key_reused")
	jobs := api(t, b, "GET", "/jobs?sort=created")["jobs"].([]any)
	equal(t, "jobs", fmt.Sprint(jobs[0].(map[string]any)["id"], jobs[1].(map[string]any)["id"], len(jobs)),
		fmt.Sprint(first, other, 2))
}

func TestAnETagHoldsUntilTheJobChanges(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	path := "/jobs/" + api(t, b, "POST", "/jobs", `{"queue": "q"}`)["id"].(string)
	show := apiCase{method: "GET", path: path}
	resp, _ := show.ask(t, b)
	etag := resp.Header.Get("ETag")
	change := apiCase{
		name: "first change", method: "PATCH", path: path, body: `{"priority": 5}`,
		header: map[string]string{"If-Match": etag},
	}
	resp, text := change.ask(t, b)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("ETag") == etag {
		t.Fatalf("%d %s, ETag %s after %s", resp.StatusCode, text, resp.Header.Get("ETag"), etag)
	}
	change.name, change.status, change.code = "second change", 412, "job_changed"
	change.check(t, b)
	change.header["If-Match"] = resp.Header.Get("ETag")
	b.Crash()
	b.Restart()
	if resp, text := change.ask(t, b); resp.StatusCode != http.StatusOK {
		t.Errorf("the ETag does not hold after a crash: %s", text)
	}
}

// An operation over many jobs that a crash interrupts is listed as interrupted, and what it has done stays done.
func TestOperationsInterruptedByACrashAreListed(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	const jobs = 100_000
	for range jobs / 1000 {
		api(t, b, "POST", "/jobs", `{"jobs": [`+strings.Repeat(`{"queue": "q"},`, 999)+`{"queue": "q"}]}`)
	}
	done := api(t, b, "POST", "/job-actions?wait=60s", `{"action": "priority", "priority": 1, "ids": ["seq:1"]}`)
	equal(t, "a finished operation", done["state"], any("done"))
	op := api(t, b, "POST", "/job-actions", `{"action": "kill", "filter": {"queue": "q"}}`)
	b.Crash()
	b.Restart()
	equal(t, "a finished operation after the crash", api(t, b, "GET", "/operations/"+done["id"].(string))["state"],
		any("done"))
	after := api(t, b, "GET", "/operations/"+op["id"].(string))
	dead := api(t, b, "GET", "/jobs?state=dead&count=true&limit=1")["count"].(float64)
	switch after["state"] {
	case "interrupted":
		if dead >= jobs {
			t.Errorf("all %v jobs are dead, and the operation is interrupted", dead)
		}
	case "done":
		equal(t, "dead jobs", dead, float64(jobs))
	default:
		t.Errorf("the operation is %v", after)
	}
	if shown := after["changed"].(float64); shown > dead {
		t.Errorf("the operation claims %v changes, %v jobs are dead", shown, dead)
	}
}

func TestARunningOperationCanBeCancelled(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Durability: "none"})
	const jobs = 100_000
	for range jobs / 1000 {
		api(t, b, "POST", "/jobs", `{"jobs": [`+strings.Repeat(`{"queue": "q"},`, 999)+`{"queue": "q"}]}`)
	}
	op := api(t, b, "POST", "/job-actions", `{"action": "kill", "filter": {"queue": "q"}}`)["id"].(string)
	api(t, b, "DELETE", "/operations/"+op)
	var v map[string]any
	harness.Eventually(t, func() string {
		if v = api(t, b, "GET", "/operations/"+op); v["state"] == "running" || v["state"] == "queued" {
			return fmt.Sprint(v)
		}
		return ""
	})
	dead := api(t, b, "GET", "/jobs?state=dead&count=true&limit=1")["count"]
	if v["state"] != "cancelled" && v["state"] != "done" || v["changed"] != dead {
		t.Errorf("%v jobs are dead after %v", dead, v)
	}
}

func TestLargeAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	get := apiCase{method: "GET", path: "/openapi.json", header: map[string]string{"Accept-Encoding": "gzip"}}
	resp, text := get.ask(t, b)
	equal(t, "encoding", resp.Header.Get("Content-Encoding"), "gzip")
	plain := apiCase{method: "GET", path: "/openapi.json", header: map[string]string{"Accept-Encoding": "identity"}}
	_, whole := plain.ask(t, b)
	if len(text) > len(whole)/3 {
		t.Errorf("%d bytes of %d", len(text), len(whole))
	}
}

func TestHTTP2IsSpokenWithAndWithoutTLS(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	cert, key, pool := selfSigned(t)
	plain := harness.Start(t, harness.Options{})
	secure := harness.Prepare(t,
		harness.Options{Config: fmt.Sprintf("[http]\ntls_cert = %q\ntls_key = %q\n", cert, key)})
	check(t, secure.Spawn())
	awaitReady(t, secure.Process, 0)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	protocols.SetHTTP2(true)
	client := &http.Client{Transport: &http.Transport{
		Protocols: &protocols, TLSClientConfig: &tls.Config{RootCAs: pool},
	}}
	for _, url := range []string{"http://" + plain.HTTP, "https://" + secure.HTTP} {
		resp, err := client.Get(url + "/api/v1/queues")
		check(t, err)
		text, err := io.ReadAll(resp.Body)
		check(t, err)
		_ = resp.Body.Close() // it was read
		equal(t, url, fmt.Sprintln(resp.StatusCode, resp.Proto, strings.TrimSpace(string(text))),
			"200 HTTP/2.0 {\"queues\":[]}\n")
	}
}

func TestPagesForbidScriptsOfOthers(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	for _, path := range []string{"//", "//jobs", "//docs/", "/docs"} {
		page := apiCase{method: "GET", path: path}
		resp, _ := page.ask(t, b)
		policy := resp.Header.Get("Content-Security-Policy")
		if resp.StatusCode != 200 ||
			!strings.Contains(policy, "default-src 'none'") && !strings.Contains(policy, "default-src 'self'") ||
			strings.Contains(policy, "unsafe-eval") {
			t.Errorf("%s: %d, policy %q", path, resp.StatusCode, policy)
		}
		equal(t, "type sniffing of "+path, resp.Header.Get("X-Content-Type-Options"), "nosniff")
	}
}

func TestBrokerCanServeHTTPOnly(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Prepare(t, harness.Options{Args: []string{"--workq", "off", "--gearman", "off", "--faktory", "off"}})
	b.Workq, b.Gearman, b.Faktory = "off", "off", "off"
	b.Restart()
	job := api(t, b, "POST", "/jobs", `{"queue": "q", "args": [1]}`)
	lease := api(t, b, "POST", "/queues/q/lease?wait=2s", "{}")
	equal(t, "leased", lease["job"].(map[string]any)["id"], job["id"])
	api(t, b, "POST", "/leases/"+lease["lease"].(string)+"/complete")
	code, _ := b.Terminate()
	equal(t, "exit code", code, 0)
}

func TestMissingBodyIsRefused(t *testing.T) {
	if !harness.Nightly {
		return // it takes half a minute
	}
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	c, err := net.Dial("tcp", b.HTTP)
	check(t, err)
	defer func() { _ = c.Close() }() // the answer was read
	_, err = io.WriteString(c, "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
	check(t, err)
	begin := time.Now()
	check(t, c.SetReadDeadline(begin.Add(harness.Patience)))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	check(t, err)
	defer func() { _ = resp.Body.Close() }() // it was read
	var p struct{ Code string }
	check(t, json.NewDecoder(resp.Body).Decode(&p))
	equal(t, "answer", fmt.Sprintln(resp.StatusCode, p.Code), "408 request_timeout\n")
	harness.CheckDuration(t, "a body that does not come", time.Since(begin), time.Minute)
}
