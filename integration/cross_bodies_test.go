package integration_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// bodyCase is a body and the arguments that a Faktory worker receives for it.
type bodyCase struct{ name, body, args, encoding string }

// bodyCases are bodies of every kind, small and large; the largest one is Workq's limit.
func bodyCases(t *testing.T) []bodyCase {
	t.Helper()
	const largest = 1 << 20
	text := strings.Repeat("0123456789abcdef", largest/16)
	binary := strings.Repeat("\xff\x00\r\n", largest/4)
	array := `["` + text[:largest-4] + `"]`
	return []bodyCase{
		{
			"array", `[1, "two",{"z":9007199254740993 ,"a":1.50},"\u00fc",[]]`,
			`[1, "two",{"z":9007199254740993 ,"a":1.50},"\u00fc",[]]`, "json",
		},
		{"text", "plain ünïcode\r\nof two lines", `["plain ünïcode\r\nof two lines"]`, "text"},
		{"binary", "\xff\x00\xfe", `["/wD+"]`, "base64"},
		{"empty", "", `[""]`, "text"},
		{"large array", array, array, "json"},
		{"large text", text, `["` + text + `"]`, "text"},
		{"large binary", binary, `["` + base64.StdEncoding.EncodeToString([]byte(binary)) + `"]`, "base64"},
	}
}

// TestBodiesInEveryDirection checks the body that clients of each protocol send as workers of each protocol receive it,
// and the result, which is the same body, as the client receives it.
func TestBodiesInEveryDirection(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	d := open(t, b)
	for _, e := range bodyCases(t) {
		for _, from := range []string{"workq", "gearman"} {
			for _, to := range []string{"workq", "gearman", "faktory"} {
				queue := strings.ReplaceAll(e.name, " ", "-") + "-" + from + "-" + to
				what := fmt.Sprintf("%s from %s to %s", e.name, from, to)
				result := d.callAndWait(t, b, from, queue, e.body)
				if to == "faktory" {
					d.fetchAndAck(t, what, queue, from, e)
					same(t, what+": result", result(), "so")
					continue
				}
				same(t, what, d.takeAndEcho(t, b, to, queue), e.body)
				same(t, what+": result", result(), e.body)
			}
		}
	}
	for _, e := range bodyCases(t) {
		if e.encoding != "json" {
			continue
		}
		for _, to := range []string{"workq", "gearman"} {
			reply, err := d.faktory.Generic(fmt.Sprintf(`PUSH {"jid":%q,"queue":"of-faktory","jobtype":"T","args":%s}`,
				newID(), e.body))
			check(t, err)
			equal(t, "push", reply, "OK")
			same(t, e.name+" from faktory to "+to, d.takeAndEcho(t, b, to, "of-faktory"), e.body)
		}
	}
}

// same compares strings that may be too long to print.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	t.Fatalf("%s: %d bytes, not %d; from %d on %.60q, not %.60q", what, len(got), len(want), at, got[at:], want[at:])
}

// callAndWait submits a foreground job and returns a function that waits for the result.
func (d clients) callAndWait(t *testing.T, b *harness.Broker, from, queue, body string) func() string {
	t.Helper()
	if from == "gearman" {
		c := harness.DialGearman(t, b)
		_, err := c.Submit(gearmanclient.SubmitJob, queue, "", body)
		check(t, err)
		return func() string {
			p, err := c.Expect(gearmanclient.WorkComplete, harness.Patience)
			check(t, err)
			check(t, c.Close())
			return p.Args(2)[1]
		}
	}
	c, job := harness.DialWorkq(t, b), wqJob(queue, body)
	type outcome struct {
		body string
		err  error
	}
	done := make(chan outcome, 1)
	go func() { // ends with the job, or with the connection
		r, err := c.Run(job)
		if err == nil && !r.OK {
			err = fmt.Errorf("failed: %q", r.Body)
		}
		done <- outcome{string(r.Body), err}
	}()
	return func() string {
		o := <-done
		check(t, o.err)
		check(t, c.Close())
		return o.body
	}
}

// takeAndEcho is a Gearman or Workq worker that returns the body as the result.
func (d clients) takeAndEcho(t *testing.T, b *harness.Broker, to, queue string) string {
	t.Helper()
	if to == "workq" {
		l, err := d.workq.Lease(harness.Patience, queue)
		check(t, err)
		check(t, d.workq.Complete(l.ID, l.Body))
		return string(l.Body)
	}
	w := harness.DialGearman(t, b)
	check(t, w.Send(gearmanclient.CanDo, queue))
	handle, _, _, body, err := w.Grab(harness.Patience)
	check(t, err)
	check(t, w.Send(gearmanclient.WorkComplete, handle, body))
	check(t, w.Send(gearmanclient.EchoReq, "done"))
	_, err = w.Expect(gearmanclient.EchoRes, harness.Patience)
	check(t, err)
	check(t, w.Close())
	return body
}

// fetchAndAck is a Faktory worker; custom.broker tells it how the body was encoded.
func (d clients) fetchAndAck(t *testing.T, what, queue, from string, e bodyCase) {
	t.Helper()
	raw := ""
	harness.Eventually(t, func() string {
		var err error
		raw, err = d.faktory.Generic("FETCH " + queue)
		check(t, err)
		if raw == "" {
			return what + ": nothing to fetch"
		}
		return ""
	})
	var job struct {
		Jid    string
		Args   json.RawMessage
		Custom brokerNote
	}
	check(t, json.Unmarshal([]byte(raw), &job))
	if e.encoding == "json" {
		same(t, what, string(job.Args), e.args)
	} else {
		var got, want []string
		check(t, json.Unmarshal(job.Args, &got))
		check(t, json.Unmarshal([]byte(e.args), &want))
		same(t, what, strings.Join(got, "|"), strings.Join(want, "|"))
	}
	equal(t, what+": note", job.Custom.Broker.From+" "+job.Custom.Broker.Encoding, from+" "+e.encoding)
	ack(t, d.faktory, job.Jid, `"so"`)
}
