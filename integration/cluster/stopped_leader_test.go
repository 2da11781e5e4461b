package cluster_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// A leader that stood still while another one took over finds requests in its sockets that change nothing as far as it
// knows: submissions that join a waiting job, and heartbeats. It confirms none of them, since the jobs may have ended
// meanwhile.
func TestStoppedLeaderConfirmsNothingWhenItWakes(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"after", "before"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			c := prepare(t, nil, fmt.Sprintf("[cluster]\nlease_commit = %q\n", setting)).start()
			old := c.leader()
			g, err := gearmanclient.Dial(c.nodes[old].Gearman)
			check(t, err)
			defer func() { _ = g.Close() }() // the test is over
			const jobs = 40
			for i := range jobs {
				_, err := g.Submit(gearmanclient.SubmitJobBg, "q", fmt.Sprint("u", i), "body")
				check(t, err)
			}
			lease, beat := c.heartbeats(old)
			if status := beat(); status != http.StatusOK {
				t.Fatalf("a heartbeat in time: %d", status)
			}
			check(t, c.nodes[old].Signal(syscall.SIGSTOP))
			time.Sleep(50 * time.Millisecond) // each of its threads stops when it next runs
			for i := range jobs {
				check(t, g.Send(gearmanclient.SubmitJobBg, "q", fmt.Sprint("u", i), "again"))
			}
			late := make(chan int, 1)
			go func() { late <- beat() }()
			next := (old + 1) % size
			c.awaitLeaderOtherThan(old)
			c.finishAll(next, "q")
			c.do(next, "POST", "/leases/"+lease+"/complete", "{}", nil)
			check(t, c.nodes[old].Signal(syscall.SIGCONT))
			acked := 0
			for {
				p, err := g.Read(5 * time.Second)
				if err != nil {
					break // the connection is closed
				}
				if p.Type == gearmanclient.JobCreated {
					acked++
				}
			}
			if acked > 0 {
				t.Errorf("%d of %d submissions were acknowledged by a leader that had been replaced, and never run",
					acked, jobs)
			}
			if status := <-late; status/100 == 2 {
				t.Errorf("a heartbeat was answered %d by a leader that had been replaced", status)
			}
		})
	}
}

// heartbeats leases a job through a node and returns what extends the lease over one connection: it returns the status
// of the answer, zero without one.
func (c *cluster) heartbeats(i int) (lease string, beat func() int) {
	c.t.Helper()
	check(c.t, c.api(i, "POST", "/jobs", `{"queue":"held","args":[]}`, nil))
	var held struct {
		Lease string `json:"lease"`
	}
	check(c.t, c.api(i, "POST", "/queues/held/lease", "", &held))
	check(c.t, c.api(i, "POST", "/jobs", `{"queue":"other","args":[]}`,
		nil)) // its commit has the lease too: the next leader knows it
	conn, err := net.Dial("tcp", c.nodes[i].HTTP)
	check(c.t, err)
	c.t.Cleanup(func() { _ = conn.Close() })
	in := bufio.NewReader(conn)
	return held.Lease, func() int {
		if _, err := fmt.Fprintf(conn,
			"POST /api/v1/leases/%s/heartbeat HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n", held.Lease,
			c.nodes[i].HTTP); err != nil {
			return 0
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close() // it is empty, or of no interest
		return resp.StatusCode
	}
}

// finishAll has workers at a node finish all jobs of a function. A worker whose connection ends is replaced.
func (c *cluster) finishAll(i int, function string) {
	c.t.Helper()
	harness.Eventually(c.t, func() string {
		worked := work(c.nodes[i].Gearman, function)
		status, body, err := c.nodes[i].Get("/api/v1/jobs?queue=" + function + "&limit=1")
		if err != nil || status != http.StatusOK || strings.Contains(body, `"queue"`) {
			return fmt.Sprint("jobs are left: ", status, body, err, worked)
		}
		return ""
	})
}

// work finishes jobs of a function until there was none for a second, which is an error, or the connection ends.
func work(address, function string) error {
	w, err := gearmanclient.Dial(address)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }() // all was sent
	if err := w.Send(gearmanclient.CanDo, function); err != nil {
		return err
	}
	for {
		handle, _, _, _, err := w.Grab(time.Second)
		if err != nil {
			return err
		}
		if err := w.Send(gearmanclient.WorkComplete, handle, ""); err != nil {
			return err
		}
	}
}
