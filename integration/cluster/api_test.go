package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"broker/integration/harness"
)

// api sends a request to a node's HTTP API; an answer that is not of success is an error.
func (c *cluster) api(i int, method, path, body string, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.nodes[i].HTTP+"/api/v1"+path,
		strings.NewReader(body))
	if err != nil {
		return err
	}
	c.nodes[i].Authorize(req)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = &refusal{fmt.Sprintf("%s %s: %d %s", method, path, resp.StatusCode, text), resp.StatusCode}
	}
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// refusal is an answer of the HTTP API that is not a success.
type refusal struct {
	text   string
	status int
}

func (r *refusal) Error() string { return r.text }

// do sends a request to a node's HTTP API until a leader answers it, as clients do while the leader changes. A request
// without an answer may have taken effect. So a job needs an id, and once a request had no answer, the answers "not
// found" and "conflict" are a success.
func (c *cluster) do(i int, method, path, body string, into any) {
	c.t.Helper()
	unanswered := false
	harness.Eventually(c.t, func() string {
		err := c.api(i, method, path, body, into)
		var refused *refusal
		switch {
		case err == nil:
			return ""
		case !errors.As(err, &refused) || refused.status == http.StatusServiceUnavailable ||
			refused.status == http.StatusGatewayTimeout:
			unanswered = true
			return err.Error()
		case unanswered && (refused.status == http.StatusConflict || refused.status == http.StatusNotFound):
			return ""
		}
		c.t.Fatal(err)
		return ""
	})
}

// find asks the leader for a job until it answers; false: there is no such job.
func (c *cluster) find(id string) (there bool) {
	c.t.Helper()
	harness.Eventually(c.t, func() string {
		err := c.api(c.leader(), "GET", "/jobs/"+id, "", nil)
		var refused *refusal
		if there = err == nil; there || errors.As(err, &refused) && refused.status == http.StatusNotFound {
			return ""
		}
		return err.Error()
	})
	return there
}

// transfer makes a node lead.
func (c *cluster) transfer(to int) {
	c.t.Helper()
	c.caughtUp()
	harness.Eventually(c.t, func() string {
		leader := c.leader()
		if leader == to {
			return ""
		}
		if err := c.api(leader, "POST", "/cluster/transfer", fmt.Sprintf(`{"id":"n%d"}`, to+1), nil); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("n%d leads", leader+1)
	})
	c.ready(to)
}

// awaitLeaderOtherThan waits until another node leads, as the others see it.
func (c *cluster) awaitLeaderOtherThan(i int) {
	c.t.Helper()
	harness.Eventually(c.t, func() string {
		v, err := c.view((i + 1) % len(c.nodes))
		if err != nil || v.Leader == "" || v.Leader == fmt.Sprint("n", i+1) {
			return fmt.Sprint(v, err)
		}
		return ""
	})
}

// metric is a metric of a node, or -1.
func (c *cluster) metric(i int, name string) float64 {
	status, body, err := c.nodes[i].Get("/metrics")
	if err != nil || status != http.StatusOK {
		return -1
	}
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				return v
			}
		}
	}
	return -1
}

// goesOn waits until clients get acknowledgements again, and says how long they did not.
func (l *load) goesOn(what string) (gap time.Duration) {
	l.c.t.Helper()
	before := l.history.count(submitted)
	harness.Eventually(l.c.t, func() string {
		if n := l.history.count(submitted); n < before+20 {
			return fmt.Sprintf("%s: %d submissions acknowledged since", what, n-before)
		}
		return ""
	})
	gap = l.resetGap()
	l.c.t.Logf("%s: longest without an acknowledgement %v", what, gap.Round(10*time.Millisecond))
	return gap
}

// logs waits until a node has logged something.
func (c *cluster) logs(i int, text string) {
	c.t.Helper()
	harness.Eventually(c.t, func() string {
		if !strings.Contains(c.nodes[i].Output(), text) {
			return fmt.Sprintf("n%d does not log %q:\n%s", i+1, text, c.nodes[i].Tail())
		}
		return ""
	})
}
