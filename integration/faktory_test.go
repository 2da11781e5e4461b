package integration_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
)

func fktJob(queue string, args ...any) *faktory.Job {
	if args == nil {
		args = []any{}
	}
	job := faktory.NewJob(queue, args...)
	job.Queue = queue
	return job
}

// patient makes a job one that has failed ten times: its next try is hours away. That of another job comes 15 seconds
// after its failure, which a busy machine may reach.
func patient(job *faktory.Job) *faktory.Job {
	job.Failure = &faktory.Failure{
		RetryCount: 10, RetryRemaining: 10, FailedAt: time.Now().UTC().Format(time.RFC3339Nano), ErrorMessage: "m",
		ErrorType: "e",
	}
	return job
}

func fktState(t testing.TB, c *faktory.Client) *faktory.FaktoryState {
	t.Helper()
	s, err := c.CurrentState()
	check(t, err)
	return s
}

// awaitSets waits until the sets have the sizes wanted, such as "retries 1, dead 0".
func awaitSets(t testing.TB, c *faktory.Client, want string) {
	t.Helper()
	harness.Eventually(t, func() string {
		sets := fktState(t, c).Data.Sets
		for part := range strings.SplitSeq(want, ", ") {
			var name string
			var n uint64
			if _, err := fmt.Sscan(part, &name, &n); err != nil {
				return err.Error()
			}
			if sets[name] != n {
				return fmt.Sprintf("sets are %v, not %s", sets, want)
			}
		}
		return ""
	})
}

func TestFaktoryGoClientPushFetchAck(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := dialFaktory(t, b)
	job := fktJob("mail", "someone", 3, map[string]any{"deep": []any{1, "two", nil}})
	job.Custom = map[string]any{"tenant": "acme"}
	check(t, c.Push(job))
	equal(t, "queue size", fktState(t, c).Data.Queues["mail"], uint64(1))
	got, err := c.Fetch("other", "mail")
	check(t, err)
	equal(t, "jid", got.Jid, job.Jid)
	equal(t, "type", got.Type, "mail")
	equal(t, "args", fmt.Sprint(got.Args), "[someone 3 map[deep:[1 two <nil>]]]")
	equal(t, "custom", fmt.Sprint(got.Custom), "map[tenant:acme]")
	equal(t, "default retries", *got.Retry, 25)
	awaitSets(t, c, "working 1")
	check(t, c.Ack(got.Jid))
	awaitSets(t, c, "working 0")
	check(t, c.Ack(got.Jid)) // repeated, and for an unknown job
	check(t, c.Ack("no-such-job"))
	state := fktState(t, c)
	equal(t, "processed", state.Data.TotalProcessed, uint64(1))
	equal(t, "drained queue stays", state.Data.Queues["mail"], uint64(0))
	none, err := c.Fetch("mail")
	check(t, err)
	equal(t, "fetch from an empty queue", none == nil, true)
}

func TestFaktoryBulkPushNamesRefusedJobs(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := dialFaktory(t, b)
	good := make([]*faktory.Job, 500)
	for i := range good {
		good[i] = fktJob("bulk", i)
	}
	short, untyped := fktJob("bulk"), fktJob("bulk")
	short.Jid, untyped.Type = "short", ""
	refused, err := c.PushBulk(append(slices.Clone(good), short, untyped))
	check(t, err)
	equal(t, "refused", len(refused), 2)
	equal(t, "short jid", refused["short"], "jobs must have a reasonable jid parameter")
	equal(t, "no type", refused[untyped.Jid], "jobs must have a jobtype parameter")
	equal(t, "accepted", fktState(t, c).Data.Queues["bulk"], uint64(500))
	for i := range good {
		got, err := c.Fetch("bulk")
		check(t, err)
		equal(t, "order", got.Jid, good[i].Jid)
		check(t, c.Ack(got.Jid))
	}
}

func TestFaktoryFailedJobIsRetriedAndThenDead(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := dialFaktory(t, b)
	job := fktJob("fragile", 1)
	retry := 1
	job.Retry = &retry
	check(t, c.Push(job))
	fail := func() *faktory.Job {
		t.Helper()
		got, err := c.Fetch("fragile")
		check(t, err)
		if got == nil {
			t.Fatal("there is no job to fetch")
		}
		check(t, c.Fail(got.Jid, errors.New("it broke"), nil))
		return got
	}
	fail()
	awaitSets(t, c, "retries 1, dead 0, working 0")
	reply, err := c.Generic(`MUTATE {"cmd":"requeue","target":"retries","filter":{}}`)
	check(t, err)
	equal(t, "requeue", reply, "OK")
	again := fail()
	equal(t, "failure message", again.Failure.ErrorMessage, "it broke")
	equal(t, "retry count", again.Failure.RetryCount, 0)
	awaitSets(t, c, "retries 0, dead 1")
	equal(t, "failures", fktState(t, c).Data.TotalFailures, uint64(2))
	reply, err = c.Generic(`MUTATE {"cmd":"clear","target":"dead"}`)
	check(t, err)
	equal(t, "clear", reply, "OK")
	awaitSets(t, c, "dead 0")
}

func TestFaktoryScheduledJobIsReadyWhenDue(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := dialFaktory(t, b)
	soon, late := fktJob("timed", "soon"), fktJob("timed", "late")
	due := time.Now().Add(2 * time.Second)
	soon.At = due.UTC().Format(time.RFC3339Nano)
	late.At = time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
	check(t, c.Push(late))
	awaitSets(t, c, "scheduled 1")
	check(t, c.Push(soon))
	var got *faktory.Job
	harness.Eventually(t, func() string {
		var err error
		if got, err = c.Fetch("timed"); err != nil || got == nil {
			return fmt.Sprint("nothing came: ", err)
		}
		return ""
	})
	equal(t, "jid", got.Jid, soon.Jid)
	if time.Now().Before(due) {
		t.Error("the job came too early")
	}
	awaitSets(t, c, "scheduled 1")
}

func TestFaktoryRefusals(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := dialFaktory(t, b)
	for command, want := range map[string]string{
		`PUSH {"jid":"12345678","jobtype":"x"}`:                                    "ERR jobs must have an args parameter",
		`PUSH {"jid":"1234567","jobtype":"x","args":[]}`:                           "ERR jobs must have a reasonable jid parameter",
		`PUSH {"jid":"12345678","args":[]}`:                                        "ERR jobs must have a jobtype parameter",
		`PUSH {"jid":"12345678","jobtype":"x","args":[],"reserve_for":86401}`:      "ERR jobs cannot be reserved for more than one day",
		`PUSH {"jid":"12345678","jobtype":"x","args":[`:                            "ERR invalid JSON:",
		`PUSH {"jid":"12345678","jobtype":"x","args":[],"queue":"no spaces here"}`: `ERR cannot get "no spaces here" queue`,
		`PUSH {"jid":"12345678","jobtype":"x","args":[],"at":"yesterday"}`:         `ERR invalid timestamp for 'at': "yesterday"`,
		`FETCH`:                      "ERR must call fetch with at least one queue",
		`FAIL {"jid":"unknown-job"}`: "ERR Job not found unknown-job",
		`FAIL {}`:                    "ERR missing JID",
		`BEAT {"wid":"unknown"}`:     "ERR unknown worker unknown",
		`NONSENSE`:                   "ERR unknown command NONSENSE",
		`QUEUE UNKNOWN x`:            "ERR no such QUEUE subcommand: UNKNOWN",
		`MUTATE {"cmd":"eat"}`:       "ERR",
		`PUSHB {"not":"an array"}`:   "ERR invalid JSON:",
		`HELLO {"v":2}`:              "ERR unknown command HELLO",
		`QUEUE LATENCY *`:            "ERR QUEUE LATENCY does not support wildcards",
	} {
		reply, err := c.Generic(command)
		if err == nil {
			t.Errorf("%s: accepted with %q", command, reply)
			continue
		}
		if refusal := (*faktory.ProtocolError)(nil); !errors.As(err, &refusal) {
			t.Fatalf("%s: %v is not a refusal", command, err)
		}
		if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n got %s\nwant %s", command, err, want)
		}
	}
	check(t, c.Push(fktJob("still-works")))
}

func TestFaktoryPausedQueueIsSkipped(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := dialFaktory(t, b)
	check(t, c.Push(fktJob("halted", 1)))
	check(t, c.PauseQueues("halted"))
	got, err := c.Fetch("halted")
	check(t, err)
	equal(t, "fetch while paused", got == nil, true)
	check(t, c.ResumeQueues("halted"))
	got, err = c.Fetch("halted")
	check(t, err)
	equal(t, "fetch after resume", got != nil, true)
	check(t, c.Ack(got.Jid))
	check(t, c.Push(fktJob("halted", 2)))
	check(t, c.RemoveQueues("halted"))
	_, listed := fktState(t, c).Data.Queues["halted"]
	equal(t, "listed after remove", listed, false)
}

func TestFaktoryPushEndsAParkedFetch(t *testing.T) {
	t.Parallel()
	b := start(t)
	waiting, pusher := dialFaktory(t, b), dialFaktory(t, b)
	for i := range 5 {
		job := fktJob("instant", i)
		got := make(chan *faktory.Job, 1)
		go func() { // ends with the fetch, for which the test waits
			var j *faktory.Job
			var err error
			for j == nil && err == nil { // each fetch waits for two seconds
				j, err = waiting.Fetch("never", "instant")
			}
			if err != nil {
				t.Error(err)
			}
			got <- j
		}()
		time.Sleep(100 * time.Millisecond) // the push should come while the fetch waits; either order is valid
		check(t, pusher.Push(job))
		j := <-got
		if j == nil || j.Jid != job.Jid {
			t.Fatalf("fetched %+v, not %s", j, job.Jid)
		}
		check(t, pusher.Ack(j.Jid)) // any connection may acknowledge it
	}
}

func TestFaktoryReservationOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	b := start(t)
	worker, other := dialFaktory(t, b), dialFaktory(t, b)
	check(t, worker.Push(fktJob("kept", 1)))
	got, err := worker.Fetch("kept")
	check(t, err)
	check(t, worker.Close())
	none, err := other.Fetch("kept")
	check(t, err)
	equal(t, "fetched again while reserved", none == nil, true)
	check(t, other.Ack(got.Jid))
	equal(t, "processed", fktState(t, other).Data.TotalProcessed, uint64(1))
}

// A FETCH waits for no sync. A broker that is killed right after it may not know of the reservation; the worker's
// report counts.
func TestFaktoryReportsCountWhenACrashHasTakenTheReservation(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := dialFaktory(t, b)
	for round := range 10 {
		queue := fmt.Sprint("crashed-", round) // those of earlier rounds are tried again
		check(t, c.Push(fktJob(queue, 1)))
		check(t, c.Push(fktJob(queue, 2)))
		done, err := c.Fetch(queue)
		check(t, err)
		failed, err := c.Fetch(queue)
		check(t, err)
		b.Crash()
		b.Restart()
		c = dialFaktory(t, b)
		check(t, c.Ack(done.Jid))
		check(t, c.Fail(failed.Jid, errors.New("crashed"), nil))
		again, err := c.Fetch(queue)
		check(t, err)
		if again != nil {
			t.Fatalf("job %s was reported and runs again", again.Jid)
		}
	}
	state := fktState(t, c)
	equal(t, "processed", state.Data.TotalProcessed, uint64(20))
	equal(t, "failures", state.Data.TotalFailures, uint64(10))
}

func TestFaktoryNumbersAreNeverRewritten(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t) // the reference server rounds integers above 2^53
	b := start(t)
	c := dialFaktory(t, b)
	const args = `[9007199254740993,123456789012345678901234567890,1.10,1e400,-0,"ü\u0000\ud83d\ude00",{"z":1,"a":[{}]}]`
	reply, err := c.Generic(`PUSH {"jid":"numbers-1","queue":"exact","jobtype":"x","args":` + args +
		`,"custom":{"big":18446744073709551616}}`)
	check(t, err)
	equal(t, "push", reply, "OK")
	raw, err := c.Generic("FETCH exact")
	check(t, err)
	var got struct {
		Args   json.RawMessage
		Custom json.RawMessage
	}
	check(t, json.Unmarshal([]byte(raw), &got))
	equal(t, "args", string(got.Args), args)
	equal(t, "custom", strings.Contains(string(got.Custom), `"big":18446744073709551616`), true)
}

func TestFaktoryPasswordIsChecked(t *testing.T) {
	t.Parallel()
	b := harness.Start(t, harness.Options{Password: "s3cret pass"})
	c := dialFaktory(t, b)
	check(t, c.Push(fktJob("guarded", 1)))
	wrong := *b
	for _, password := range []string{"wrong", ""} {
		wrong.Password = password
		if c, err := harness.OpenFaktory(&wrong, harness.Patience); err == nil {
			t.Errorf("password %q was accepted", password)
			check(t, c.Close())
		} else if !strings.Contains(err.Error(), "Invalid password") {
			t.Errorf("password %q: %v", password, err)
		}
	}
}

func TestFaktoryFlushRemovesJobsAndCounters(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := dialFaktory(t, b)
	check(t, c.Push(fktJob("flushed", 1)))
	check(t, c.Push(fktJob("flushed", 2)))
	got, err := c.Fetch("flushed")
	check(t, err)
	check(t, c.Ack(got.Jid))
	check(t, c.Flush())
	state := fktState(t, c)
	equal(t, "enqueued", state.Data.TotalEnqueued, uint64(0))
	equal(t, "processed", state.Data.TotalProcessed, uint64(0))
}
