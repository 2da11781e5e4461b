package integration_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// tableOrigin submits a job. It returns a function that reports what the client has received since; some clients wait.
type tableOrigin struct {
	name   string
	submit func(c *tableCell) (told func(patient bool) string)
}

func (o tableOrigin) isFaktory() bool { return strings.HasPrefix(o.name, "Faktory") }

func tableOrigins() []tableOrigin {
	return []tableOrigin{
		{"Workq add", tableWorkqAdd(false)},
		{"Workq schedule", tableWorkqAdd(true)},
		{"Workq run", tableWorkqRun},
		{"Gearman background", tableGearmanSilent(false)},
		{"Gearman foreground", tableGearmanForeground},
		{"Gearman epoch", tableGearmanSilent(true)},
		{"Faktory push", tableFaktoryPush(false)},
		{"Faktory scheduled", tableFaktoryPush(true)},
		{"Faktory batch", tableFaktoryBatch},
		{"HTTP submit", tableHTTPSubmit(false)},
		{"HTTP scheduled", tableHTTPSubmit(true)},
		{"HTTP wait", tableHTTPWait(false)},
		{"HTTP ephemeral", tableHTTPWait(true)},
	}
}

// shortly is a full second in the near future: times in the protocols have no fractions.
func shortly() time.Time { return time.Now().Truncate(time.Second).Add(2 * time.Second) }

// leases are the ttr and the ttl of a Workq job.
func (c *tableCell) leases() (ttr, ttl time.Duration) {
	ttr, ttl = tableLong, 2*tableLong
	switch c.end {
	case "lease expired":
		ttr = tableShortLease
	case "expired":
		ttl = tableMortal
	}
	return ttr, ttl
}

func tableWorkqAdd(scheduled bool) func(c *tableCell) func(patient bool) string {
	return func(c *tableCell) func(patient bool) string {
		job := wqJob(c.queue, "hi")
		job.ID, job.At = c.id, shortly()
		job.TTR, job.TTL = c.leases()
		submit := c.clients.workq.Add
		if scheduled {
			submit = c.clients.workq.Schedule
		}
		check(c.t, submit(job))
		c.name = c.id
		return c.waitWith(fmt.Sprintf("result %s 86400000\r\n", c.id))
	}
}

func tableWorkqRun(c *tableCell) func(patient bool) string {
	ttr, wait := tableLong, tableLong
	switch c.end {
	case "lease expired":
		ttr = tableShortLease
	case "expired": // the client's wait ends while a worker has the job, then the lease ends
		ttr, wait = tableMortal, tableMortal/2
	}
	c.name = c.id
	return c.waitWith(fmt.Sprintf("run %s %s %d %d 2\r\nhi\r\n", c.id, c.queue, ttr.Milliseconds(),
		wait.Milliseconds()))
}

// waitWith sends a command whose reply is the outcome.
func (c *tableCell) waitWith(command string) func(patient bool) string {
	w := harness.DialWorkq(c.t, c.b)
	check(c.t, w.Send([]byte(command)))
	return func(patient bool) string {
		if patient {
			check(c.t, w.Silent(100*time.Millisecond))
			return "waits on"
		}
		line, err := w.Line(0)
		check(c.t, err)
		if line != "+OK 1" {
			return "`" + line + "`"
		}
		head, err := w.Line(0)
		check(c.t, err)
		body, err := w.Line(0)
		check(c.t, err)
		fields := strings.Fields(head)
		equal(c.t, "head of the outcome", fields, []string{c.id, fields[1], fmt.Sprint(len(body))})
		return fmt.Sprintf("`%s`, result `%s`", fields[1], body)
	}
}

// tableGearmanSilent submits a background job; its client can only poll.
func tableGearmanSilent(later bool) func(c *tableCell) func(patient bool) string {
	return func(c *tableCell) func(patient bool) string {
		var err error
		if later {
			check(c.t,
				c.clients.gearman.Send(gearmanclient.SubmitJobEpoch, c.queue, "", fmt.Sprint(shortly().Unix()), "hi"))
			var p gearmanclient.Packet
			p, err = c.clients.gearman.Expect(gearmanclient.JobCreated, harness.Patience)
			c.name = string(p.Data)
		} else {
			c.name, err = c.clients.gearman.Submit(gearmanclient.SubmitJobBg, c.queue, "", "hi")
		}
		check(c.t, err)
		return func(bool) string { return "GET_STATUS: " + c.stateWords()[0] }
	}
}

func tableGearmanForeground(c *tableCell) func(patient bool) string {
	client := harness.DialGearman(c.t, c.b)
	check(c.t, client.Send(gearmanclient.OptionReq, "exceptions"))
	_, err := client.Expect(gearmanclient.OptionRes, harness.Patience)
	check(c.t, err)
	c.name, err = client.Submit(gearmanclient.SubmitJob, c.queue, "", "hi")
	check(c.t, err)
	return func(patient bool) string {
		wait := harness.Patience
		if patient {
			wait = 100 * time.Millisecond
		}
		p, err := client.Read(wait)
		if patient && isTimeout(err) {
			return "waits on"
		}
		check(c.t, err)
		return "`" + gearmanWords(p) + "`"
	}
}

// gearmanWords is the text form of a packet, without the handle.
func gearmanWords(p gearmanclient.Packet) string {
	names := map[gearmanclient.Type]string{
		gearmanclient.WorkComplete: "WORK_COMPLETE", gearmanclient.WorkFail: "WORK_FAIL",
		gearmanclient.WorkException: "WORK_EXCEPTION", gearmanclient.Error: "ERROR",
	}
	name, known := names[p.Type]
	args := p.Args(2)
	switch {
	case !known:
		return p.String()
	case p.Type == gearmanclient.Error:
		return name + " " + args[0]
	}
	return strings.TrimSpace(name + " " + args[1])
}

// workUnit is the JSON that a Faktory client pushes.
func (c *tableCell) workUnit(custom, more string) string {
	if c.end == "expired" {
		custom += fmt.Sprintf(`,"expires_in":%d`, int(tableUnclaimed.Seconds()))
	}
	return fmt.Sprintf(`{"jid":%q,"jobtype":%q,"queue":%q,"args":["hi"],"reserve_for":%d,"custom":{%s}%s}`,
		c.id, c.queue, c.queue, int(tableFaktoryLease.Seconds()), custom, more)
}

// faktoryOK sends a Faktory command; the reply must be +OK.
func (c *tableCell) faktoryOK(command string) {
	reply, err := c.clients.faktory.Generic(command)
	check(c.t, err)
	equal(c.t, command, reply, "OK")
}

func tableFaktoryPush(scheduled bool) func(c *tableCell) func(patient bool) string {
	return func(c *tableCell) func(patient bool) string {
		at := ""
		if scheduled {
			at = fmt.Sprintf(`,"at":%q`, time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano))
		}
		c.faktoryOK("PUSH " + c.workUnit(`"track":1`, at))
		c.name = c.id
		return func(bool) string { return "TRACK: " + c.stateWords()[2] }
	}
}

func tableFaktoryBatch(c *tableCell) func(patient bool) string {
	callback := fmt.Sprintf(`{"jobtype":"T","args":[],"queue":"%s-callbacks"}`, c.queue)
	bid, err := c.clients.faktory.Generic(fmt.Sprintf(`BATCH NEW {"success":%s,"complete":%s}`, callback, callback))
	check(c.t, err)
	c.faktoryOK("PUSH " + c.workUnit(fmt.Sprintf(`"bid":%q`, bid), ""))
	c.faktoryOK("BATCH COMMIT " + bid)
	c.name = c.id
	return func(bool) string {
		text, err := c.clients.faktory.Generic("BATCH STATUS " + bid)
		check(c.t, err)
		var s struct {
			Pending, Failed int
			Complete        string `json:"complete_st"`
			Success         string `json:"success_st"`
		}
		check(c.t, json.Unmarshal([]byte(text), &s))
		told := fmt.Sprintf("BATCH: pending %d, failed %d", s.Pending, s.Failed)
		if s.Complete != "" {
			told += ", complete runs"
		}
		if s.Success != "" {
			told += ", success runs"
		}
		return told
	}
}
