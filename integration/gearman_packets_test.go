package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// expectArgs reads a packet of a type and returns its arguments.
func expectArgs(t testing.TB, c *gearmanclient.Client, kind gearmanclient.Type, n int) []string {
	t.Helper()
	p, err := c.Expect(kind, harness.Patience)
	check(t, err)
	return p.Args(n)
}

// synced waits until the packets sent before on the connection were processed.
func synced(t testing.TB, c *gearmanclient.Client) {
	t.Helper()
	check(t, c.Send(gearmanclient.EchoReq, "sync"))
	equal(t, "echo", expectArgs(t, c, gearmanclient.EchoRes, 1), []string{"sync"})
}

func TestGearmanErrorsHaveTheirCodesAndTexts(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := harness.DialGearman(t, b)
	const invalid = "INVALID_COMMAND\x00Command not expected"
	for _, e := range []struct {
		kind gearmanclient.Type
		args []string
		want string
	}{
		{5, nil, invalid},
		{6, nil, invalid},
		{8, []string{"H:x:1"}, invalid},
		{10, nil, invalid},
		{11, []string{"H:x:1", "f", "x"}, invalid},
		{17, []string{"x"}, invalid},
		{19, []string{"code", "text"}, invalid},
		{20, []string{"H:x:1", "0", "0", "0", "0"}, invalid},
		{24, nil, invalid},
		{27, []string{"exceptions"}, invalid},
		{31, []string{"H:x:1", "f", "u", "x"}, invalid},
		{40, []string{"H:x:1", "f", "u", "r", "x"}, invalid},
		{42, []string{"u", "0", "0", "0", "0", "0"}, invalid},
		{gearmanclient.OptionReq, []string{"nonsense"}, "UNKNOWN_OPTION\x00Server does not recognize given option"},
		{gearmanclient.WorkData, []string{"H:x:1", "x"}, "JOB_NOT_FOUND\x00Job does not exist on server"},
		{gearmanclient.WorkWarning, []string{"H:x:1", "x"}, "JOB_NOT_FOUND\x00Job does not exist on server"},
		{gearmanclient.WorkStatus, []string{"H:x:1", "1", "2"}, "JOB_NOT_FOUND\x00Job given in work result not found"},
		{gearmanclient.WorkComplete, []string{"H:x:1", "x"}, "JOB_NOT_FOUND\x00Job given in work result not found"},
		{gearmanclient.WorkFail, []string{"H:x:1"}, "JOB_NOT_FOUND\x00Job given in work result not found"},
		{
			gearmanclient.WorkException,
			[]string{"H:x:1", "x"},
			"JOB_NOT_FOUND\x00An exception was received for a job that does not exist",
		},
		{
			gearmanclient.SubmitJobBg,
			[]string{"f", strings.Repeat("u", 65), "x"},
			"ARGUMENT_TOO_LARGE\x00Unique value too large",
		},
	} {
		check(t, c.Send(e.kind, e.args...))
		p, err := c.Expect(gearmanclient.Error, harness.Patience)
		if err != nil {
			t.Fatalf("type %d: %v", e.kind, err)
		}
		if string(p.Data) != e.want {
			t.Errorf("type %d: %q, not %q", e.kind, p.Data, e.want)
		}
	}
	synced(t, c) // the connection still works
}

func TestGearmanOptionsAreEchoedInAnyCase(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := harness.DialGearman(t, b)
	for _, name := range []string{"exceptions", "EXCEPTIONS"} {
		check(t, c.Send(gearmanclient.OptionReq, name))
		equal(t, "option", expectArgs(t, c, gearmanclient.OptionRes, 1), []string{name})
	}
}

func TestGearmanCantDoGivesRunningJobsBack(t *testing.T) {
	t.Parallel()
	b := start(t)
	c, w, other := harness.DialGearman(t, b), harness.DialGearman(t, b), harness.DialGearman(t, b)
	for _, packet := range []gearmanclient.Type{gearmanclient.CantDo, gearmanclient.ResetAbilities} {
		handle, err := c.Submit(gearmanclient.SubmitJobBg, "given-back", "", "x")
		check(t, err)
		check(t, w.Send(gearmanclient.CanDo, "given-back"))
		got, _, _, _, err := w.Grab(harness.Patience)
		check(t, err)
		equal(t, "handle", got, handle)
		if packet == gearmanclient.CantDo {
			check(t, w.Send(packet, "given-back"))
		} else {
			check(t, w.Send(packet))
		}
		synced(t, w)
		equal(t, "status", statusRow(t, b, "given-back"), "1 0 0")
		check(t, w.Send(gearmanclient.WorkComplete, handle, "late"))
		equal(t, "late completion", expectArgs(t, w, gearmanclient.Error, 2)[0], "JOB_NOT_FOUND")
		check(t, other.Send(gearmanclient.CanDo, "given-back"))
		got, _, _, _, err = other.Grab(harness.Patience)
		check(t, err)
		equal(t, "handle at the other worker", got, handle)
		check(t, other.Send(gearmanclient.WorkComplete, handle, ""))
		check(t, other.Send(gearmanclient.CantDo, "given-back"))
		synced(t, other)
	}
}

func TestGearmanTimeoutOfTheWorkerGivesTheJobToAnother(t *testing.T) {
	t.Parallel()
	needPerl(t)
	b := start(t)
	slow := perlWorker(t, b, "slow=hold/1")
	perlClient(t, b, "x", "background", "normal", "slow")
	id := slow.Await("job", 1)[0].ID
	awaitStatus(t, b, "slow", "1 0 1")
	quick := harness.DialGearman(t, b)
	check(t, quick.Send(gearmanclient.CanDo, "slow"))
	handle, _, _, _, err := quick.Grab(harness.Patience)
	check(t, err)
	equal(t, "handle", handle, id)
	check(t, quick.Send(gearmanclient.WorkComplete, handle, ""))
	awaitStatus(t, b, "slow", "0 0 2")
}

func TestGearmanClientIDAndFunctionsAreShownByWorkers(t *testing.T) {
	t.Parallel()
	b := start(t)
	c, w := harness.DialGearman(t, b), harness.DialGearman(t, b)
	check(t, w.Send(gearmanclient.SetClientID, "the worker"))
	check(t, w.Send(gearmanclient.CanDo, "older"))
	check(t, w.Send(gearmanclient.CanDo, "newer"))
	synced(t, w)
	rows, err := c.AdminList("workers")
	check(t, err)
	found := false
	for _, row := range rows {
		found = found || strings.HasSuffix(row, " 127.0.0.1 the worker : newer older")
	}
	if !found {
		t.Errorf("no row for the worker: %q", rows)
	}
}

func TestGearmanStatusByUnique(t *testing.T) {
	t.Parallel()
	b := start(t)
	c, w := harness.DialGearman(t, b), harness.DialGearman(t, b)
	status := func(unique string) []string {
		t.Helper()
		check(t, c.Send(gearmanclient.GetStatusUnique, unique))
		return expectArgs(t, c, gearmanclient.StatusResUnique, 6)
	}
	_, err := harness.DialGearman(t, b).Submit(gearmanclient.SubmitJob, "f", "the-key", "x")
	check(t, err)
	equal(t, "waiting", status("the-key"), []string{"the-key", "1", "0", "0", "0", "1"})
	check(t, w.Send(gearmanclient.CanDo, "f"))
	handle, _, unique, _, err := w.Grab(harness.Patience)
	check(t, err)
	equal(t, "unique at the worker", unique, "the-key")
	check(t, w.Send(gearmanclient.WorkStatus, handle, "1", "3"))
	synced(t, w)
	equal(t, "running", status("the-key"), []string{"the-key", "1", "1", "1", "3", "1"})
	equal(t, "unknown", status("another")[1:], []string{"0", "0", "0", "0", "0"})
}

func TestGearmanReduceJobNamesItsReducer(t *testing.T) {
	t.Parallel()
	b := start(t)
	c, w := harness.DialGearman(t, b), harness.DialGearman(t, b)
	check(t, w.Send(gearmanclient.CanDo, "map"))
	const submitReduceBackground, assignAll = 38, 40
	check(t, c.Send(submitReduceBackground, "map", "key", "reducer", "0", "data"))
	handle := expectArgs(t, c, gearmanclient.JobCreated, 1)[0]
	check(t, w.Send(gearmanclient.GrabJobAll))
	equal(t, "assignment", expectArgs(t, w, assignAll, 5)[:4], []string{handle, "map", "key", "reducer"})
	check(t, w.Send(gearmanclient.WorkComplete, handle, ""))

	plain, err := c.Submit(gearmanclient.SubmitJobBg, "map", "", "data")
	check(t, err)
	check(t, w.Send(gearmanclient.GrabJobAll)) // a job without a reducer is assigned as for GRAB_JOB_UNIQ
	equal(t, "assignment", expectArgs(t, w, gearmanclient.JobAssignUniq, 4), []string{plain, "map", "", "data"})
}

func TestGearmanCoalescing(t *testing.T) {
	t.Parallel()
	b := start(t)
	c, w := harness.DialGearman(t, b), harness.DialGearman(t, b)
	submit := func(function, unique, body string) string {
		t.Helper()
		handle, err := c.Submit(gearmanclient.SubmitJobBg, function, unique, body)
		check(t, err)
		return handle
	}
	first := submit("f", "key", "first body")
	equal(t, "same unique", submit("f", "key", "second body"), first)
	equal(t, "same unique, another function", submit("g", "key", "x") != first, true)
	anonymous := submit("f", "", "x")
	equal(t, "no unique", submit("f", "", "x") != anonymous, true)
	dash := submit("f", "-", "the workload")
	equal(t, "by workload", submit("f", "-", "the workload"), dash)
	equal(t, "another workload", submit("f", "-", "another") != dash, true)
	equal(t, "status", statusRow(t, b, "f"), "5 0 0")
	check(t, w.Send(gearmanclient.CanDo, "f"))
	handle, _, _, body, err := w.Grab(harness.Patience)
	check(t, err)
	equal(t, "the first workload wins", handle+body, first+"first body")
	equal(t, "while it runs", submit("f", "key", "third body"), first)
	check(t, w.Send(gearmanclient.WorkComplete, handle, ""))
	synced(t, w)
	equal(t, "after it has run", submit("f", "key", "x") != first, true)
}

func TestGearmanBackgroundJobOutlivesAForegroundClientThatJoinedIt(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t) // gearmand drops it
	b := start(t)
	c, joiner := harness.DialGearman(t, b), harness.DialGearman(t, b)
	_, err := c.Submit(gearmanclient.SubmitJobBg, "joined", "key", "precious")
	check(t, err)
	_, err = joiner.Submit(gearmanclient.SubmitJob, "joined", "key", "x")
	check(t, err)
	check(t, joiner.Close())
	// The other way round: the job becomes a background job and is stored.
	leaver := harness.DialGearman(t, b)
	_, err = leaver.Submit(gearmanclient.SubmitJob, "joined", "other", "stored")
	check(t, err)
	_, err = c.Submit(gearmanclient.SubmitJobBg, "joined", "other", "x")
	check(t, err)
	check(t, leaver.Close())
	b.Crash()
	b.Restart()
	equal(t, "jobs", drainInOrder(t, b, "joined"), []string{"precious", "stored"})
}

func TestGearmanScheduledAndEpochJobs(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t) // gearmand refuses the first
	b := start(t)
	c, w := harness.DialGearman(t, b), harness.DialGearman(t, b)
	const submitSched = 35
	check(t, c.Send(submitSched, "sched", "", "*", "*", "*", "*", "*", "every field"))
	equal(t, "handle", strings.HasPrefix(expectArgs(t, c, gearmanclient.JobCreated, 1)[0], "H:"), true)
	for _, when := range []string{"soon", "-1", strings.Repeat("9", 30)} {
		check(t, c.Send(gearmanclient.SubmitJobEpoch, "epoch", "", when, "x"))
		_, err := c.Expect(gearmanclient.Error, harness.Patience)
		check(t, err)
	}
	due := time.Now().Add(2 * time.Second).Truncate(time.Second)
	check(t, c.Send(gearmanclient.SubmitJobEpoch, "epoch", "", fmt.Sprint(due.Unix()), "x"))
	expectArgs(t, c, gearmanclient.JobCreated, 1)
	check(t, w.Send(gearmanclient.CanDo, "epoch"))
	check(t, w.Send(gearmanclient.PreSleep))
	_, err := w.Expect(gearmanclient.Noop, harness.Patience) // the worker is woken when the job is due
	check(t, err)
	if now := time.Now(); now.Before(due) {
		t.Errorf("woken %v early", due.Sub(now))
	}
}

func TestGearmanAdminCommandsOfManyKinds(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := harness.DialGearman(t, b)
	const missing = "ERR INVALID_ARGUMENTS An+incomplete+set+of+arguments+was+sent+to+this+command+"
	for command, want := range map[string]string{
		"create function made":      "OK\r\n",
		"CREATE Function made":      "OK\r\n",
		"create function":           missing + "create\r\n",
		"drop function":             missing + "drop\r\n",
		"drop function never-there": "ERR function not found\r\n",
		"maxqueue":                  missing + "maxqueue\r\n",
		"maxqueue made 1 2 3":       "OK\r\n",
		"cancel job H:x:1":          "ERR UNKNOWN_JOB\r\n",
		"cancel foo bar":            "ERR UNKNOWN_ERROR\r\n",
		"show nonsense":             "ERR UNKNOWN_SHOW_ARGUMENTS\r\n",
		"nonsense":                  "ERR UNKNOWN_COMMAND Unknown+server+commandnonsense\r\n",
		"verbose":                   "OK ERROR\n",
	} {
		reply, err := c.Admin(command)
		check(t, err)
		if reply != want {
			t.Errorf("%s: %q, not %q", command, reply, want)
		}
	}
	w := harness.DialGearman(t, b)
	check(t, w.Send(gearmanclient.CanDo, "busy"))
	synced(t, w)
	reply, err := c.Admin("drop function busy")
	check(t, err)
	equal(t, "drop with a worker", reply, "ERR there are still connected workers or executing clients\r\n")
}
