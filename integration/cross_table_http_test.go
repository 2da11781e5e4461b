package integration_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// http sends a request to the API.
func (c *tableCell) http(method, path, body string) httpAnswer {
	req, err := http.NewRequestWithContext(c.t.Context(), method, "http://"+c.b.HTTP+"/api/v1"+path,
		strings.NewReader(body))
	if err != nil {
		panic(err) // the cell's own constants
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return httpAnswer{Status: http.StatusBadGateway, Code: err.Error()} // the test of a client that waits has ended
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	a := httpAnswer{}
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		a, err = readAnswer(resp.StatusCode, text)
	}
	if err != nil {
		a.Status, a.Code = http.StatusBadGateway, err.Error()
	}
	return a
}

// httpJob is the body of a submission.
func (c *tableCell) httpJob(more string) string {
	lease, ttl := c.leases()
	return fmt.Sprintf(`{"id":%q,"queue":%q,"body":"hi","lease_for_s":%g,"expires_in_s":%g,"retain_for_s":3600%s}`,
		c.id, c.queue, lease.Seconds(), ttl.Seconds(), more)
}

func tableHTTPSubmit(scheduled bool) func(c *tableCell) func(patient bool) string {
	return func(c *tableCell) func(patient bool) string {
		more := ""
		if scheduled {
			more = `,"delay_s":1`
		}
		if a := c.http("POST", "/jobs", c.httpJob(more)); a.Status != http.StatusCreated {
			c.t.Fatal(a)
		}
		c.name = c.id
		return func(bool) string { return "GET: " + c.http("GET", "/jobs/"+c.id, "").String() }
	}
}

func tableHTTPWait(ephemeral bool) func(c *tableCell) func(patient bool) string {
	return func(c *tableCell) func(patient bool) string {
		answer := make(chan httpAnswer, 1)
		go func() { // ends with the test's context
			answer <- c.http("POST", "/jobs?wait=10m", c.httpJob(fmt.Sprintf(`,"ephemeral":%v`, ephemeral)))
		}()
		c.name = c.id
		return func(patient bool) string {
			atMost := tableLong
			if patient {
				atMost = 100 * time.Millisecond
			}
			select {
			case a := <-answer:
				return "answer: " + a.String()
			case <-time.After(atMost):
				return "waits on"
			}
		}
	}
}

func tableLeaseByHTTP(c *tableCell, must bool) *tableWorker {
	wait := "0s"
	if must {
		wait = "2m"
	}
	l := c.http("POST", "/queues/"+c.queue+"/lease?wait="+wait, "{}")
	if !must {
		equal(c.t, "a lease without a job", l.Status, http.StatusNoContent)
		return nil
	}
	body := l.Job.Body
	if l.Job.Args != nil {
		body = string(l.Job.Args)
	}
	equal(c.t, "what the HTTP worker is handed", []string{l.Job.ID, body}, []string{c.row.ID, c.body()})
	return &tableWorker{hangup: func() error { return nil }, finish: func(ok bool) string {
		if ok {
			return c.http("POST", "/leases/"+l.Lease+"/complete", `{"result":"done"}`).String()
		}
		return c.http("POST", "/leases/"+l.Lease+"/fail", `{"error_class":"Broken","message":"no way"}`).String()
	}}
}
