package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// reloadable starts a broker whose settings file the test can rewrite.
func reloadable(t *testing.T, settings string) (b *harness.Broker, rewrite func(settings string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reloadable.toml")
	check(t, os.WriteFile(path, []byte(settings), 0o600))
	b = harness.Start(t, harness.Options{Args: []string{"--config", path}})
	times := 0
	return b, func(settings string) {
		t.Helper()
		times++
		check(t, os.WriteFile(path, []byte(settings), 0o600))
		check(t, b.Signal(syscall.SIGHUP))
		harness.Eventually(t, func() string {
			said := b.Output()
			if n := strings.Count(said, "settings reloaded") + strings.Count(said, "reload failed") +
				strings.Count(said, "reload refused"); n < times {
				return fmt.Sprintf("settings were read %d times again, not %d", n, times)
			}
			return ""
		})
	}
}

// everySecond is a cron entry that submits a job to a queue every second.
func everySecond(queue string) string {
	return fmt.Sprintf(`
[[cron]]
schedule = "* * * * * *"
  [cron.job]
    type = "Tick"
    queue = %q
    retry = 2
    reserve_for = 90
    args = [1, {a = "<b>"}]
  [cron.job.custom]
    note = "kept"
`, queue)
}

func TestCronJobsComeOnTimeAsWholeWorkUnits(t *testing.T) {
	t.Parallel()
	b := harness.Start(t, harness.Options{Config: everySecond("ticks")})
	c := dialFaktory(t, b)
	var last time.Time
	for range 3 {
		raw := fetchRaw(t, c, "ticks")
		arrived := time.Now()
		var job struct {
			Jid, Jobtype, Queue     string
			Retry, Reserve_for      int //nolint:staticcheck // Faktory's name
			Args, Custom            json.RawMessage
			Created_at, Enqueued_at time.Time //nolint:staticcheck // Faktory's name
		}
		check(t, json.Unmarshal([]byte(raw), &job))
		equal(t, "job", fmt.Sprint(job.Jobtype, job.Queue, job.Retry, job.Reserve_for), "Tickticks2 90")
		equal(t, "args", string(job.Args), `[1,{"a":"<b>"}]`)
		equal(t, "custom", string(job.Custom), `{"note":"kept"}`)
		if len(job.Jid) < 8 {
			t.Errorf("jid %q", job.Jid)
		}
		harness.CheckDuration(t, "the submission after the second", time.Duration(job.Created_at.Nanosecond()),
			500*time.Millisecond)
		if second := job.Created_at.Truncate(time.Second); second.Equal(last) {
			t.Errorf("two jobs for %v", second)
		} else {
			last = second
		}
		harness.CheckDuration(t, "the delivery after the submission", arrived.Sub(job.Created_at), 5*time.Second)
		check(t, c.Ack(job.Jid))
	}
	w := harness.DialGearman(t, b) // workers of other protocols receive the arguments
	check(t, w.Send(gearmanclient.CanDo, "ticks"))
	_, function, _, body, err := w.Grab(harness.Patience)
	check(t, err)
	equal(t, "as Gearman sees it", function+" "+body, `ticks [1,{"a":"<b>"}]`)
}

// fetchRaw waits for a job and returns its JSON.
func fetchRaw(t *testing.T, c *faktory.Client, queue string) string {
	t.Helper()
	for deadline := time.Now().Add(harness.Patience); time.Now().Before(deadline); {
		raw, err := c.Generic("FETCH " + queue)
		check(t, err)
		if raw != "" {
			return raw
		}
	}
	t.Fatal("no job in " + queue)
	return ""
}

// TestCrashDoesNotRepeatACronRun kills the broker at odd moments. Each job is submitted within the second in which it
// was due; after a start only the latest missed run is made up for. So two jobs in one second are a repeated run,
// except where a job that was due at the end of a second was submitted at the start of the next.
func TestCrashDoesNotRepeatACronRun(t *testing.T) {
	t.Parallel()
	b := harness.Start(t, harness.Options{Config: everySecond("crashed")})
	for _, up := range []time.Duration{1300, 900, 2050, 1000, 1700} {
		time.Sleep(up * time.Millisecond)
		b.Crash()
		b.Restart()
	}
	w := harness.DialGearman(t, b)
	check(t, w.Send(gearmanclient.CanDo, "crashed"))
	var rows []string
	harness.Eventually(t, func() string {
		var err error
		rows, err = w.AdminList("show jobs")
		check(t, err)
		if len(rows) < 7 {
			return fmt.Sprintf("%d jobs", len(rows))
		}
		return ""
	})
	seconds := make(map[int64]int)
	c := dialFaktory(t, b)
	for range rows {
		var job struct {
			Jid        string
			Created_at time.Time //nolint:staticcheck // Faktory's name
		}
		check(t, json.Unmarshal([]byte(fetchRaw(t, c, "crashed")), &job))
		seconds[job.Created_at.Unix()]++
		check(t, c.Ack(job.Jid))
	}
	doubled := len(rows) - len(seconds)
	if doubled > 1 {
		t.Errorf("%d repeated runs: %v", doubled, seconds)
	}
	if len(seconds) < 5 {
		t.Errorf("jobs in only %d seconds: %v", len(seconds), seconds)
	}
}

func TestReloadChangesCronEntries(t *testing.T) {
	t.Parallel()
	b, rewrite := reloadable(t, everySecond("first"))
	c := dialFaktory(t, b)
	fetchRaw(t, c, "first")
	rewrite(everySecond("second"))
	fetchRaw(t, c, "second")
	for job := ""; ; {
		raw, err := c.Generic("FETCH first") // waits for up to two seconds
		check(t, err)
		if raw == "" {
			break
		}
		if raw == job {
			t.Fatal("the same job was handed out again")
		}
	}
	rewrite(strings.Replace(everySecond("third"), "* * * * * *", "* * * *", 1)) // a mistake
	if !strings.Contains(b.Output(), `cron[0].schedule: \"* * * *\"`) ||
		!strings.Contains(b.Output(), "reload failed, keeping the old settings") {
		t.Errorf("the mistake is not logged:\n%s", b.Output())
	}
	fetchRaw(t, c, "second")
	rewrite("")
	equal(t, "third", fktState(t, c).Data.Queues["third"], uint64(0))
}

func TestBadCronEntryStopsTheStart(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	path := filepath.Join(t.TempDir(), "bad.toml")
	check(t,
		os.WriteFile(path, []byte(strings.Replace(everySecond("no such name"), "* * * * * *", "@never", 1)), 0o600))
	r := harness.Exec(t, harness.Command{Argv: []string{harness.Binary(t), "check-config", "--config", path}})
	if r.Code != 1 || !strings.Contains(r.Stderr, "cron[0].schedule") {
		t.Errorf("check-config: %+v", r)
	}
	check(t, os.WriteFile(path, []byte(everySecond("no such name")), 0o600))
	r = harness.Exec(t, harness.Command{Argv: []string{harness.Binary(t), "check-config", "--config", path}})
	if r.Code != 1 || !strings.Contains(r.Stderr, `cron[0].job: cannot get "no such name" queue`) {
		t.Errorf("check-config: %+v", r)
	}
}

func TestReloadNamesSettingsThatNeedARestart(t *testing.T) {
	t.Parallel()
	b, rewrite := reloadable(t,
		"[log]\nlevel = \"info\"\n[[route]]\nfrom = \"gearman\"\nmatch = {queue = \"a\"}\nset = {queue = \"b\"}\n")
	gearman := harness.DialGearman(t, b)
	submitTo := func(function, queue string) {
		t.Helper()
		_, err := gearman.Submit(gearmanclient.SubmitJobBg, function, "", "x")
		check(t, err)
		equal(t, "status", statusRow(t, b, queue), "1 0 0")
	}
	submitTo("a", "b")
	submitTo("other", "other")
	rewrite("[log]\nlevel = \"debug\"\n" +
		"[[route]]\nfrom = \"gearman\"\nmatch = {queue = \"a\"}\nset = {queue = \"c\"}\n" +
		"[[route]]\nfrom = \"workq\"\nmatch = {queue = \"a\"}\nset = {queue = \"d\"}\n" + everySecond("debugged"))
	submitTo("a", "c")
	check(t, harness.DialWorkq(t, b).Add(wqJob("a", "x")))
	equal(t, "status", statusRow(t, b, "d"), "1 0 0")
	fetchRaw(t, dialFaktory(t, b), "debugged")
	rewrite("default_lease = \"2h\"\n[faktory]\npassword = \"very-secret\"\n")
	dialFaktory(t, b)                                      // the password is still unset
	check(t, harness.DialWorkq(t, b).Add(wqJob("a", "x"))) // and the routes are as they were
	equal(t, "status", statusRow(t, b, "d"), "2 0 0")
	for _, want := range []string{
		`"settings":["default_lease","faktory.password"]`,
		`"level":"info","setting":"log.level"`, `"routes":2`, `"level":"debug","schedule":"* * * * * *"`,
	} {
		harness.Eventually(t, func() string {
			if !strings.Contains(b.Output(), want) {
				return "nothing in the log of " + want
			}
			return ""
		})
	}
	if strings.Contains(b.Output(), "very-secret") {
		t.Error("the password is in the log")
	}
	rewrite("")
	submitTo("a", "a")
}
