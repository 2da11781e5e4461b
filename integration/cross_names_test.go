package integration_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/workqclient"
)

// jobNames are the ids of one job in the three protocols.
type jobNames struct{ handle, workq, jid string }

// scheduledOf submits a job by each protocol that is due in an hour, so that Faktory can discard it, and returns its
// ids.
func (d clients) scheduledOf(t *testing.T, b *harness.Broker, origin, queue string) jobNames {
	t.Helper()
	at := shortly().Add(60 * 60 * 1e9)
	name := newID()
	switch origin {
	case "workq":
		job := wqJob(queue, "x")
		job.ID, job.At = name, at
		check(t, d.workq.Schedule(job))
	case "gearman":
		check(t, d.gearman.Send(gearmanclient.SubmitJobEpoch, queue, "", fmt.Sprint(at.Unix()), "x"))
		p, err := d.gearman.Expect(gearmanclient.JobCreated, harness.Patience)
		check(t, err)
		name = string(p.Data)
	case "faktory":
		name = "jid-" + queue
		job := fktJob(queue, "x")
		job.Jid, job.At = name, at.UTC().Format("2006-01-02T15:04:05Z")
		job.SetCustom("track", 1)
		check(t, d.faktory.Push(job))
	}
	row := api(t, b, "GET", "/jobs/"+name)
	names := jobNames{handle: fmt.Sprint(tableHandles, ":", row["seq"]), jid: row["id"].(string)}
	names.workq = names.jid
	if alias, other := row["alias"].(string); other {
		names.workq = alias
	}
	return names
}

// TestJobIsCancelledByEachOfItsIDs: Workq's delete, Gearman's cancel job, Faktory's discard and HTTP cancel jobs of
// every origin.
func TestJobIsCancelledByEachOfItsIDs(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Config: fmt.Sprintf("[gearman]\nhandle_prefix = %q\n", tableHandles)})
	d := open(t, b)
	for _, origin := range []string{"workq", "gearman", "faktory"} {
		for by, cancel := range map[string]func(jobNames){
			"workq": func(n jobNames) { check(t, d.workq.Delete(n.workq)) },
			"gearman": func(n jobNames) {
				reply, err := d.gearman.Admin("cancel job " + n.handle)
				check(t, err)
				equal(t, "cancel", reply, "OK\r\n")
			},
			"faktory": func(n jobNames) { check(t, d.faktory.Discard(faktory.Scheduled, faktory.WithJids(n.jid))) },
			"http":    func(n jobNames) { api(t, b, "DELETE", "/jobs/"+n.handle) },
		} {
			what := fmt.Sprintf("a job of %s cancelled by %s", origin, by)
			n := d.scheduledOf(t, b, origin, "by-"+by+"-of-"+origin)
			waiter := harness.DialWorkq(t, b)
			check(t, waiter.Send([]byte("result "+n.workq+" 60000\r\n")))
			equal(t, what+" is known to Gearman", jobStatus(t, d.gearman, n.handle), "1 0 0 0")
			equal(t, what+" is known to Faktory", trackState(t, d.faktory, n.jid), "enqueued")
			check(t, waiter.Silent(1e7))
			cancel(n)
			line, err := waiter.Line(harness.Patience)
			check(t, err)
			equal(t, what+": its waiter", line, "-NOT-FOUND")
			equal(t, what+": Gearman", jobStatus(t, d.gearman, n.handle), "0 0 0 0")
			equal(t, what+": Faktory", trackState(t, d.faktory, n.jid), "unknown")
			_, err = d.workq.InspectJob(n.workq)
			wantIs(t, err, workqclient.ErrNotFound)
		}
	}
}

// trackState is the state of a job in TRACK GET.
func trackState(t *testing.T, c *faktory.Client, jid string) string {
	t.Helper()
	text, err := c.Generic("TRACK GET " + jid)
	check(t, err)
	var track struct{ State string }
	check(t, json.Unmarshal([]byte(text), &track))
	return track.State
}

// TestWorkqResultKnowsTheAlias: Workq's result command waits for jobs of other protocols.
func TestWorkqResultKnowsTheAlias(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	d := open(t, b)
	handle, err := d.gearman.Submit(gearmanclient.SubmitJobBg, "awaited", "", "x")
	check(t, err)
	alias := api(t, b, "GET", "/jobs/"+handle)["alias"].(string)
	waiter := harness.DialWorkq(t, b)
	// The reply to the first line shows that the broker has read the second one too, and waits.
	check(t, waiter.Send([]byte("hello\r\nresult "+strings.ToUpper(alias)+" 60000\r\n")))
	line, err := waiter.Line(harness.Patience)
	check(t, err)
	equal(t, "answer", line, "-CLIENT-ERROR Unknown command")
	job := fetchSoon(t, d.faktory, "awaited")
	ack(t, d.faktory, job.Jid, `"done"`)
	for _, want := range []string{"+OK 1", alias + " 1 4", "done"} {
		line, err := waiter.Line(harness.Patience)
		check(t, err)
		equal(t, "outcome", line, want)
	}
	_, err = d.workq.Result(alias, 0) // its result is not kept
	wantIs(t, err, workqclient.ErrNotFound)
}

func TestProgressCrossesProtocolsBothWays(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	d := open(t, b)

	// TRACK GET and GET_STATUS return the progress that a Gearman worker sends with WORK_STATUS.
	job := fktJob("forth", "x")
	job.Jid = "no-uuid-at-all"
	check(t, d.faktory.Push(job))
	w := harness.DialGearman(t, b)
	check(t, w.Send(gearmanclient.CanDo, "forth"))
	handle, _, _, _, err := w.Grab(harness.Patience)
	check(t, err)
	check(t, w.Send(gearmanclient.WorkStatus, handle, "1", "4"))
	harness.Eventually(t, func() string {
		text, err := d.faktory.Generic("TRACK GET " + job.Jid)
		check(t, err)
		if !strings.Contains(text, `"percent":25`) || !strings.Contains(text, `"state":"working"`) {
			return text
		}
		return ""
	})
	equal(t, "GET_STATUS", jobStatus(t, d.gearman, handle), "1 1 1 4")

	// The progress of a Faktory worker's TRACK SET reaches the foreground client, and GET_STATUS.
	caller := harness.DialGearman(t, b)
	handle, err = caller.Submit(gearmanclient.SubmitJob, "back", "", "x")
	check(t, err)
	fetched := fetchSoon(t, d.faktory, "back")
	reply, err := d.faktory.Generic(fmt.Sprintf(`TRACK SET {"jid":%q,"percent":40,"desc":"on it"}`, fetched.Jid))
	check(t, err)
	equal(t, "TRACK SET", reply, "OK")
	p, err := caller.Expect(gearmanclient.WorkStatus, harness.Patience)
	check(t, err)
	equal(t, "WORK_STATUS", p.Args(3), []string{handle, "40", "100"})
	equal(t, "GET_STATUS", jobStatus(t, d.gearman, handle), "1 1 40 100")
	check(t, d.faktory.Ack(fetched.Jid))
	p, err = caller.Expect(gearmanclient.WorkComplete, harness.Patience)
	check(t, err)
	equal(t, "result of a plain ACK", p.Args(2), []string{handle, ""})
}

// TestRoutesFeedWorkersOfOtherProtocols: routes rewrite names that the workers do not know.
func TestRoutesFeedWorkersOfOtherProtocols(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Config: `
[[route]]
from = "gearman"
match = {queue = "ResizeImage"}
set = {queue = "default", type = "Image::Resize"}
[[route]]
from = "faktory"
match = {type = "SendMail"}
set = {queue = "mail"}
[[route]]
from = "workq"
match = {queue = "old"}
set = {queue = "new"}
`})
	d := open(t, b)
	_, err := d.gearman.Submit(gearmanclient.SubmitJobBg, "ResizeImage", "", `[1]`)
	check(t, err)
	job := fetchSoon(t, d.faktory, "default")
	equal(t, "at the Faktory worker", fmt.Sprint(job.Type, job.Queue, job.Args), "Image::Resizedefault[1]")

	mail := fktJob("whatever", "to")
	mail.Type = "SendMail"
	check(t, d.faktory.Push(mail))
	w := harness.DialGearman(t, b)
	check(t, w.Send(gearmanclient.CanDo, "mail"))
	_, function, _, body, err := w.Grab(harness.Patience)
	check(t, err)
	equal(t, "at the Gearman worker", function+body, `mail["to"]`)

	old := wqJob("old", "x")
	check(t, d.workq.Add(old))
	job = fetchSoon(t, d.faktory, "new")
	equal(t, "at the Faktory worker", fmt.Sprint(job.Jid, job.Queue), old.ID+"new")
	l, err := d.gearman.Submit(gearmanclient.SubmitJobBg, "old", "", "of Gearman") // the route applies to Workq only
	check(t, err)
	equal(t, "a name without a route", api(t, b, "GET", "/jobs/"+l)["queue"], any("old"))
}
