//go:build !race

package crossprotocol

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/frontends/frontendtest"
)

// scenario is a sequence of client actions with new names each time. After it no data may remain.
type scenario struct {
	name string
	run  func(e *env, n int)
}

// textScenario sends each text on a new connection, one after the other. In the texts NNNNNNNN is replaced by the
// number of the run and TIME by the time in an hour. No command may be refused.
func textScenario(door func(*env, int) *frontendtest.Client, clients ...string) func(*env, int) {
	return func(e *env, n int) {
		for _, text := range clients {
			c := door(e, n)
			soon := e.workq.Clock.Now().Add(time.Hour).Time().Format(time.RFC3339)
			c.Send(strings.NewReplacer("NNNNNNNN", fmt.Sprintf("%08d", n), "TIME", soon).Replace(text))
			if got := "\n" + string(c.Rest()); strings.Contains(got, "\n-") && !strings.Contains(got, "\n-TIMEOUT") {
				e.t.Fatalf("%s: got %q", text, got)
			}
			c.Hangup()
		}
	}
}

func dialWorkq(e *env, _ int) *frontendtest.Client { return e.dial(e.workq) }

// dialFaktoryWorker connects a worker with a new id.
func dialFaktoryWorker(e *env, n int) *frontendtest.Client {
	return e.dialFaktory(fmt.Sprintf("worker-%08d", n))
}

// sendPackets sends packets on a new connection and returns the replies.
func sendPackets(e *env, packets ...[]byte) (*frontendtest.Client, []answer) {
	c := e.dial(e.gearman)
	for _, p := range packets {
		c.SendBytes(p)
	}
	all := e.answers(c)
	for _, a := range all {
		if a.typ == errorPacket {
			e.t.Fatalf("refused: %q", a.fields)
		}
	}
	return c, all
}

// grab connects a worker and leases the waiting job.
func grab(e *env, function string, first ...[]byte) (c *frontendtest.Client, handle string) {
	c, all := sendPackets(e, append(first, packet(canDo, function), packet(grabJobUniq))...)
	last := all[len(all)-1]
	if last.typ != jobAssignUniq {
		e.t.Fatalf("%s: no job", function)
	}
	return c, last.fields[0]
}

func gearmanScenarios() []scenario {
	submit := func(typ uint32, n int) []byte { return packet(typ, queue, fmt.Sprint("unique-", n), "x") }
	return []scenario{
		{"gearman: done", func(e *env, n int) {
			c, _ := sendPackets(e, submit(submitJobBg, n), submit(submitJobBg, n))
			w, handle := grab(e, queue)
			w.SendBytes(packet(workComplete, handle, "x"))
			c.Hangup()
			w.Hangup()
		}},
		{"gearman: watched by two and done", func(e *env, n int) {
			c, _ := sendPackets(e, submit(submitJob, n))
			d, _ := sendPackets(e, submit(submitJob, n))
			w, handle := grab(e, queue)
			w.SendBytes(packet(workData, handle, "x"))
			w.SendBytes(packet(workStatus, handle, "1", "2"))
			w.SendBytes(packet(workException, handle, "x"))
			w.SendBytes(packet(workFail, handle))
			for _, c := range []*frontendtest.Client{w, c, d} {
				c.Rest()
				c.Hangup()
			}
		}},
		{"gearman: clients leave", func(e *env, n int) {
			c, _ := sendPackets(e, submit(submitJob, n))
			c.Hangup()
			c, _ = sendPackets(e, submit(submitJobHigh, n))
			w, handle := grab(e, queue)
			c.Hangup()
			w.SendBytes(packet(workComplete, handle, ""))
			w.Hangup()
		}},
		{"gearman: worker leaves", func(e *env, n int) {
			c, _ := sendPackets(e, submit(submitJobLowBg, n))
			c.Hangup()
			w, _ := grab(e, queue, packet(setClientID, fmt.Sprint("client-", n)))
			w.Hangup()
			w, handle := grab(e, queue)
			w.SendBytes(packet(workComplete, handle, ""))
			w.Hangup()
		}},
		{"gearman: function comes and goes", func(e *env, n int) {
			f := fmt.Sprint("function-", n)
			c, _ := sendPackets(e, packet(submitJobBg, f, "", "x"))
			w, handle := grab(e, f, packet(canDoTimeout, f+"-timed", "10"))
			w.SendBytes(packet(workStatus, handle, "1", "2"))
			w.SendBytes(packet(workComplete, handle, ""))
			w.SendBytes(packet(preSleep))
			w.Hangup()
			for _, name := range []string{f, f + "-timed"} {
				c.Send("drop function " + name + "\n")
				c.Rest()
			}
			c.Hangup()
		}},
		{"gearman: woken sleeper leaves", func(e *env, n int) {
			w, _ := sendPackets(e, packet(canDo, queue), packet(preSleep))
			c, _ := sendPackets(e, submit(submitJobBg, n))
			w.Hangup()
			w, handle := grab(e, queue)
			w.SendBytes(packet(workComplete, handle, ""))
			c.Hangup()
			w.Hangup()
		}},
		{"gearman: epoch", func(e *env, n int) {
			at := e.gearman.Clock.Now().Add(time.Minute).Time().Unix()
			c, _ := sendPackets(e, packet(submitJobEpoch, queue, fmt.Sprint("unique-", n), fmt.Sprint(at), "x"))
			c.Hangup()
			e.advance(time.Minute)
			w, handle := grab(e, queue)
			w.SendBytes(packet(workComplete, handle, ""))
			w.Hangup()
		}},
		{"gearman: status requests", func(e *env, n int) {
			c, _ := sendPackets(e, packet(getStatus, fmt.Sprint("H:host:", n+1_000_000)),
				packet(getStatusUnique, fmt.Sprint("unique-", n)),
				packet(echoReq, fmt.Sprint("echo-", n)), packet(optionReq, "exceptions"))
			c.Hangup()
		}},
	}
}

func workqScenarios() []scenario {
	const (
		first  = "6ba7b810-9dad-41d1-a0b4-0000NNNNNNNN"
		second = "6ba7b810-9dad-41d1-a0b4-0001NNNNNNNN"
		add    = "add " + first + " q 60000 3600000 2 "
	)
	return []scenario{
		{"workq: done", textScenario(dialWorkq, add+"\r\nhi\r\n",
			"lease q 0\r\ncomplete "+first+" 2\r\nhi\r\nresult "+first+" 0\r\n")},
		{"workq: failed", textScenario(dialWorkq, add+"-max-attempts=2\r\nhi\r\n",
			"lease q 0\r\nfail "+first+" 2\r\nhi\r\nlease q 0\r\nfail "+first+" 2\r\nhi\r\n")},
		{"workq: deleted", textScenario(dialWorkq, add+"-priority=3\r\nhi\r\ndelete "+first+"\r\n")},
		{"workq: never leased", textScenario(dialWorkq, add+"\r\nhi\r\nresult "+first+" 0\r\n")},
		{"workq: never finished", textScenario(dialWorkq, add+"-max-attempts=1\r\nhi\r\nlease q 0\r\n")},
		{"workq: scheduled", textScenario(dialWorkq,
			"schedule "+first+" q 60000 3600000 TIME 2\r\nhi\r\ndelete "+first+"\r\n")},
		{"workq: unique, linked", textScenario(dialWorkq,
			"add "+first+" q 60000 3600000 2 -unique=key-NNNNNNNN -type=type-NNNNNNNN\r\nhi\r\n"+
				"add "+second+" q 60000 3600000 2 -after="+first+" -parent="+first+"\r\nhi\r\n"+
				"lease q 0\r\ncomplete "+first+" 0\r\n\r\nlease q 0\r\ncomplete "+second+" 0\r\n\r\n")},
		{
			"workq: linked to a failed job",
			textScenario(dialWorkq, "add "+first+" q 60000 3600000 2 -max-attempts=1\r\nhi\r\n"+
				"add "+second+" q 60000 3600000 2 -after="+first+"\r\nhi\r\n"+
				"lease q 0\r\nfail "+first+" 0\r\n\r\ndelete "+second+"\r\n"),
		},
		{"workq: names without jobs", textScenario(dialWorkq, "lease name-NNNNNNNN other-NNNNNNNN 1000\r\n")},
		{"workq: names with jobs", textScenario(dialWorkq,
			"add "+first+" name-NNNNNNNN 60000 3600000 2\r\nhi\r\nlease name-NNNNNNNN 0\r\ncomplete "+first+" 0\r\n\r\n")},
		{"workq: run, timed out", textScenario(dialWorkq, "run "+first+" q 60000 1000 2\r\nhi\r\n")},
		{"workq: run, done", func(e *env, n int) {
			id := strings.ReplaceAll(first, "NNNNNNNN", fmt.Sprintf("%08d", n))
			c := e.dial(e.workq)
			c.Send("run " + id + " q 60000 60000 2\r\nhi\r\n")
			textScenario(dialWorkq, "lease q 0\r\ncomplete "+first+" 2\r\nok\r\n")(e, n)
			if got := string(c.Rest()); !strings.HasPrefix(got, "+OK 1\r\n") {
				e.t.Fatalf("run: %q", got)
			}
			c.Hangup()
		}},
	}
}

func faktoryScenarios() []scenario {
	const (
		job     = `"jid":"jid-NNNNNNNN","jobtype":"t","args":["hi"],"queue":"q"`
		push    = "PUSH {" + job + "}\r\n"
		fetch   = "FETCH q\r\n"
		requeue = "MUTATE {\"cmd\":\"requeue\",\"target\":\"retries\"}\r\n"
		ack     = "ACK {\"jid\":\"jid-NNNNNNNN\"}\r\n"
		fail    = "FAIL {\"jid\":\"jid-NNNNNNNN\",\"errtype\":\"e-NNNNNNNN\",\"message\":\"m\",\"backtrace\":[\"b\"]}\r\n"
	)
	with := func(more string) string { return "PUSH {" + job + "," + more + "}\r\n" }
	return []scenario{
		{"faktory: done", textScenario(dialFaktoryWorker, push, fetch+ack)},
		{"faktory: in bulk", textScenario(dialFaktoryWorker, "PUSHB [{"+job+"}]\r\n", fetch+ack)},
		{"faktory: failed and done", textScenario(dialFaktoryWorker, push+fetch+fail+requeue+fetch+ack)},
		{"faktory: failed permanently", textScenario(dialFaktoryWorker, with(`"retry":0`)+fetch+fail)},
		{"faktory: failed and discarded", textScenario(dialFaktoryWorker, with(`"retry":-1`)+fetch+fail)},
		{"faktory: retried, then killed", textScenario(dialFaktoryWorker,
			with(`"retry":1`)+fetch+fail+"MUTATE {\"cmd\":\"kill\",\"target\":\"retries\"}\r\n")},
		{"faktory: scheduled", textScenario(dialFaktoryWorker,
			with(`"at":"2099-01-01T00:00:00Z"`)+"MUTATE {\"cmd\":\"discard\",\"target\":\"scheduled\"}\r\n")},
		{
			"faktory: unique",
			textScenario(dialFaktoryWorker, with(`"custom":{"unique_for":60,"unique_until":"start"}`)+fetch+ack),
		},
		{"faktory: unique lock outlives the job", textScenario(dialFaktoryWorker, with(`"custom":{"unique_for":600}`)+
			"MUTATE {\"cmd\":\"clear\",\"target\":\"retries\"}\r\n"+fetch+ack)},
		{"faktory: tracked", textScenario(dialFaktoryWorker, with(`"custom":{"track":1}`)+fetch+
			"TRACK SET {\"jid\":\"jid-NNNNNNNN\",\"percent\":5,\"desc\":\"d\"}\r\n"+ack+"TRACK GET jid-NNNNNNNN\r\n")},
		{"faktory: expires", func(e *env, n int) { // dropped when a worker asks for a job
			textScenario(dialFaktoryWorker, with(`"custom":{"expires_in":60}`),
				strings.ReplaceAll(push, "jid-", "jid-after-"))(e, n)
			e.advance(time.Hour)
			textScenario(dialFaktoryWorker, fetch+strings.ReplaceAll(ack, "jid-", "jid-after-"))(e, n)
		}},
		{"faktory: worker lost", func(e *env, n int) {
			textScenario(dialFaktoryWorker, push+fetch+"BEAT {\"wid\":\"worker-NNNNNNNN\"}\r\n")(e, n)
			e.advance(time.Hour)
			textScenario(dialFaktoryWorker, requeue+fetch+ack)(e, n)
		}},
		{
			"faktory: queue comes and goes",
			textScenario(dialFaktoryWorker, strings.ReplaceAll(push, `"q"`, `"q-NNNNNNNN"`)+
				"QUEUE PAUSE q-NNNNNNNN\r\nQUEUE RESUME q-NNNNNNNN\r\nFETCH q-NNNNNNNN\r\n"+ack+"QUEUE REMOVE q-NNNNNNNN\r\n"),
		},
		{"faktory: batch", batchScenario(true)},
		{"faktory: batch never committed", batchScenario(false)},
	}
}

// batchScenario runs the only job of a batch, and its callback if the batch is committed.
func batchScenario(commits bool) func(*env, int) {
	return func(e *env, n int) {
		c := e.dialFaktory(fmt.Sprintf("worker-%08d", n))
		c.Send(`BATCH NEW {"success":{"jobtype":"S","args":[],"queue":"q"},"description":"d"}` + "\r\n")
		bid := e.bulk(c)
		c.Send(fmt.Sprintf(
			"PUSH {\"jid\":%q,\"jobtype\":\"t\",\"args\":[],\"queue\":\"q\",\"custom\":{\"bid\":%q}}\r\n", jid(n), bid))
		c.Want("+OK\r\n")
		jobs := 1
		if commits {
			c.Send("BATCH COMMIT " + bid + "\r\n")
			c.Want("+OK\r\n")
			jobs = 2
		}
		for range jobs {
			c.Send("FETCH q\r\n")
			var job struct{ Jid string }
			e.object(c, &job)
			c.Send(fmt.Sprintf("ACK {\"jid\":%q}\r\n", job.Jid))
			c.Want("+OK\r\n")
		}
		c.Hangup()
	}
}

// scenarios returns all scenarios.
func scenarios() []scenario {
	return slices.Concat(gearmanScenarios(), workqScenarios(), faktoryScenarios())
}

// repeat runs a scenario several times, then waits until all data with a limited lifetime has expired.
func (d scenario) repeat(e *env, from, times int) {
	for n := range times {
		d.run(e, from+n)
	}
	for range 4 { // the end of one wait may start another
		e.advance(181 * 24 * time.Hour)
	}
}

// TestFinishedScenariosKeepNoMemory repeats each scenario. Each round doubles the number of runs, so that a table that
// is never cleared must grow in every round; memory that is allocated once can only fail one round. Not parallel: it
// measures memory.
func TestFinishedScenariosKeepNoMemory(t *testing.T) {
	const first, last = core.MaxFinished, 8 * core.MaxFinished // the broker remembers this many finished jobs
	const most = 12                                            // bytes a run: less than the smallest possible leak
	for _, d := range scenarios() {
		t.Run(d.name, func(t *testing.T) {
			e := newEnv(t, frontendtest.InMemory)
			// so that leases are counted by worker
			e.do(&core.PutLimit{Limit: core.Limit{
				Selector: core.InQueue(queue, core.ScopeQueue, ""),
				Throttle: core.Throttle{Leased: 100, SlotFor: time.Minute}, FromConfig: true,
			}})
			d.repeat(e, 0, first)
			var seen []string
			for times := first; times <= last; times *= 2 {
				before := coretest.LiveBytes()
				d.repeat(e, times, times)
				more := coretest.LiveBytes() - before
				if more < int64(times)*most {
					return
				}
				seen = append(seen, fmt.Sprintf("%d runs leave %d bytes", times, more))
			}
			t.Errorf("%s; jobs %v", strings.Join(seen, ", "), e.do(&core.ReadStats{}).Stats.Jobs)
		})
	}
}

// TestFinishedScenariosLeaveNothingOnDisk checks that the store contains the same data after many runs as after one.
func TestFinishedScenariosLeaveNothingOnDisk(t *testing.T) {
	t.Parallel()
	for _, d := range scenarios() {
		type rest struct {
			bodies, meta uint64
			jobs         any
			wrong        string
		}
		left := func(times int) rest {
			fsys := coretest.MemoryFS()
			e := newEnv(t, func(o *engine.Options) { o.FS = fsys })
			d.repeat(e, 0, times)
			if err := e.workq.Broker.(*engine.Engine).Shutdown(); err != nil {
				t.Fatal(err)
			}
			x, err := engine.Inspect(t.Context(), "data", fsys, nil)
			if err != nil {
				t.Fatal(err)
			}
			return rest{x.Bodies, x.MetaEntries, x.Stats.Jobs, fmt.Sprint(x.Damage, x.Orphans, x.Inconsistency)}
		}
		if once, often := left(1), left(20); once != often {
			t.Errorf("%s: %+v is left in the store, after one run %+v", d.name, often, once)
		}
	}
}
