package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// These tests show that an import reports every job that it leaves behind.

// TestImportOfRefusedJobsGoesOn has a job among others that the broker refuses. It stays at the source and is listed,
// at each rerun.
func TestImportOfRefusedJobsGoesOn(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for name, test := range map[string]struct {
		source importSource
		fill   func(t *testing.T, address string)
		states string // of the rows with refused jobs
		hidden int    // scheduled jobs that the protocol does not show
	}{
		"gearmand": {importSources[0], fillRefusedGearman, "[ready]", 0},
		"faktory":  {importSources[1], fillRefusedFaktory, "[ready]", 3},
		"redis of faktory": {importSources[2], func(t *testing.T, a string) {
			fillRefusedFaktory(t, faktoryOf(a))
		}, "[scheduled ready]", 0},
		"redis of faktory 9": {importSources[3], func(t *testing.T, a string) {
			fillRefusedFaktory(t, faktoryOf(a))
		}, "[scheduled ready]", 0},
		"beanstalkd": {importSources[4], fillRefusedBeanstalk, "[dead ready scheduled]", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := harness.Start(t, harness.Options{Config: "[gearman]\nmax_body = 1000\n[http]\nmax_body = \"4KiB\"\n"})
			address, to := test.source.start(t, b)
			test.source.fill(t, address, 40)
			test.fill(t, address)
			test.source.fill(t, address, 80) // gearmand knows half of them already
			for run := range 2 {
				file := filepath.Join(t.TempDir(), "refused")
				args := to
				if run == 1 {
					args = append(slices.Clone(to), "--skip-refused", file)
				}
				cmd := importCommand(t, b, test.source.name, address, args...)
				code := []int{exitLeft, 0}[run]
				if test.hidden > 0 {
					code = exitLeft
				}
				r := endImport(t, code, cmd)
				if r.Moved < []int{80, 0}[run] || r.Refused == 0 || r.Left != r.Refused+test.hidden {
					t.Errorf("run %d: %+v", run, r)
				}
				var states []string
				for _, row := range r.Rows {
					if row.Refused > 0 {
						states = append(states, row.State)
						if !strings.Contains(row.Reason, "refused by this broker") {
							t.Errorf("reason %q", row.Reason)
						}
					}
				}
				equal(t, "rows with refused jobs", fmt.Sprint(states), test.states)
				if run == 1 {
					checkRefusedFile(t, file, r.Refused)
				}
			}
		})
	}
}

func checkRefusedFile(t *testing.T, path string, n int) {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	equal(t, "lines of the file", len(lines), n)
	for _, line := range lines {
		var refused struct {
			Queue, State, ID, Reason string
			Job                      json.RawMessage
		}
		check(t, json.Unmarshal([]byte(line), &refused))
		if refused.Queue == "" || refused.ID == "" || refused.Reason == "" || len(refused.Job) < 10 {
			t.Errorf("refused job: %s", line)
		}
	}
}

func fillRefusedGearman(t *testing.T, address string) {
	c, err := gearmanclient.Dial(address)
	check(t, err)
	defer func() { _ = c.Close() }() // every request was answered
	for i := range 3 {
		_, err = c.Submit(gearmanclient.SubmitJobBg, "numbers", fmt.Sprint("large", i), strings.Repeat("x", 5000))
		check(t, err)
	}
}

// fillRefusedFaktory pushes jobs of a batch that the broker does not know, into the queue and the schedule.
func fillRefusedFaktory(t *testing.T, address string) {
	c := dialSourceFaktory(t, address)
	for i := range 6 {
		j := faktory.NewJob("Member", i)
		j.Queue = "numbers"
		j.SetCustom("bid", "b-unknown")
		if i%2 == 1 {
			j.At = time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
		}
		check(t, c.Push(j))
	}
}

func fillRefusedBeanstalk(t *testing.T, address string) {
	c := dialBeanstalk(t, address)
	c.say("USING", "use numbers")
	large := strings.Repeat("x", 5000)
	c.put(1024, 0, 60, large)
	c.put(1024, 3600, 60, large)
	c.put(0, 0, 60, large)
	c.say("WATCHING", "watch numbers")
	id := strings.Fields(c.say("RESERVED", "reserve"))[1]
	_, err := c.r.ReadString('\n')
	check(t, err)
	c.say("BURIED", "bury "+id+" 1")
}

func TestImportClampsALongTTR(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	address, _ := startBeanstalkSource(t, b)
	c := dialBeanstalk(t, address)
	c.put(1024, 0, 4294967295, "patient")
	r := runImport(t, b, "beanstalkd", address)
	equal(t, "report", r.text(), "default ready 1 1 0\n")
	if jobs := importedJobs(t, b); len(jobs) != 1 || jobs[0].LeaseForS < 99*365*86400 {
		t.Errorf("%+v", jobs)
	}
}

// TestImportMovesPausedTubes has many tubes, and jobs of all states in a paused one.
func TestImportMovesPausedTubes(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	address, _ := startBeanstalkSource(t, b)
	c := dialBeanstalk(t, address)
	c.say("USING", "use stopped")
	for i := range 300 {
		c.put(1024, 0, 60, fmt.Sprint("ready", i))
		c.put(1024, 3600, 60, fmt.Sprint("later", i))
	}
	c.put(5, 0, 60, "urgent")
	c.say("PAUSED", "pause-tube stopped 3600")
	c.say("USING", "use other")
	c.put(1024, 3600, 60, "later")

	dry := runImport(t, b, "beanstalkd", address, "--dry-run")
	equal(t, "dry run", dry.text(), "other scheduled 1 0 1\nstopped ready 301 0 301\nstopped scheduled 300 0 300\n")
	equal(t, "paused tubes", fmt.Sprint(dry.Paused), "[stopped]")
	r := runImport(t, b, "beanstalkd", address)
	equal(t, "report", r.text(), "other scheduled 1 1 0\nstopped ready 301 301 0\nstopped scheduled 300 300 0\n")
	var got []string
	for _, j := range importedJobs(t, b, "--queue", "stopped", "--state", "ready", "--sort", "queue") {
		got = append(got, j.Body)
	}
	equal(t, "number of ready jobs", len(got), 301)
	equal(t, "first jobs", fmt.Sprint(got[:3]), "[urgent ready0 ready1]")
	equal(t, "paused here", pausedHere(t, b, "stopped"), true)
}

func pausedHere(t *testing.T, b *harness.Broker, queue string) bool {
	t.Helper()
	_, text, err := b.Get("/api/v1/queues/" + queue)
	check(t, err)
	var q struct{ Paused bool }
	check(t, json.Unmarshal([]byte(text), &q))
	return q.Paused
}

// TestImportFindsFewJobsAmongManyIDs has one delayed and one buried job that are old, and many jobs that are gone.
func TestImportFindsFewJobsAmongManyIDs(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	address, _ := startBeanstalkSource(t, b)
	c := dialBeanstalk(t, address)
	c.put(1024, 3600, 60, "old")
	c.put(1024, 3600, 60, "older")
	for range 3000 {
		_, err := fmt.Fprint(c.Conn, "put 1 0 60 1\r\nx\r\n")
		check(t, err)
		line, err := c.r.ReadString('\n')
		check(t, err)
		c.say("DELETED", "delete "+strings.Fields(line)[1])
	}
	r := runImport(t, b, "beanstalkd", address)
	equal(t, "report", r.text(), "default scheduled 2 2 0\n")
}

// TestImportOfPausedFaktoryQueues goes over the protocol: it needs consent to resume a queue.
func TestImportOfPausedFaktoryQueues(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	address, to := startFaktorySource(t, b)
	fillFaktory(t, address, 50)
	c := dialSourceFaktory(t, address)
	check(t, c.PauseQueues("numbers"))
	start := time.Now()
	r := runPartialImport(t, b, "faktory", address, to...)
	harness.CheckDuration(t, "an import that moves nothing", time.Since(start), 20*time.Second)
	if len(r.Rows) != 1 || r.Left != 50 || !strings.Contains(r.Rows[0].Reason, "--resume-paused") {
		t.Errorf("%+v", r)
	}
	r = runImport(t, b, "faktory", address, append(to, "--resume-paused")...)
	equal(t, "report", r.text(), "numbers ready 50 50 0\n")
	equal(t, "paused here", pausedHere(t, b, "numbers"), true)
	fillFaktory(t, address, 1)
	j, err := c.Fetch("numbers")
	check(t, err)
	if j != nil {
		t.Error("the queue is not paused again at the source")
	}
}

// TestPausedFaktoryQueuesStayPausedWhenAnImportIsKilled kills imports by SIGKILL and by two signals, of which the
// second one ends the program at once.
func TestPausedFaktoryQueuesStayPausedWhenAnImportIsKilled(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	address, to := startFaktorySource(t, b)
	c := dialSourceFaktory(t, address)
	jobs, moved := 0, 0
	for _, signals := range [][]os.Signal{{syscall.SIGKILL}, {syscall.SIGTERM, syscall.SIGINT}} {
		for begin := true; begin || moved >= jobs; begin = false { // again if an import was over before it was killed
			fillFaktory(t, address, 2000)
			jobs += 2000
			check(t, c.PauseQueues("numbers"))
			cmd := importCommand(t, b, "faktory", address, append(to, "--resume-paused")...)
			check(t, cmd.Start())
			harness.Eventually(t, func() string {
				if n := readyOf(t, b, "numbers"); n <= moved {
					return fmt.Sprintf("%d jobs", n)
				}
				return ""
			})
			for _, s := range signals {
				_ = cmd.Process.Signal(s) // the import may have ended by the first one
			}
			_ = cmd.Wait() // it was killed
			moved = readyOf(t, b, "numbers")
		}
		harness.Eventually(t, func() string { // the source may still work on the last request
			j, err := c.Fetch("numbers")
			check(t, err)
			if j != nil {
				return fmt.Sprintf("after %v, the queue is not paused at the source", signals)
			}
			return ""
		})
	}
	equal(t, "paused here", pausedHere(t, b, "numbers"), true)
}

// TestImportFromAFaktoryStoreOfBothLayouts has a store that 1.9 has filled and 1.10 goes on with: 1.10 does not see the
// older jobs.
func TestImportFromAFaktoryStoreOfBothLayouts(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	harness.Need(t, "redis-server")
	b := harness.Start(t, harness.Options{})
	dir := t.TempDir()
	for i, version := range []string{server.FaktoryOld, server.Faktory} {
		s, err := server.StartFaktory(harness.FaktoryServer(t, version), dir, "")
		check(t, err)
		c := dialSourceFaktory(t, s.Addr)
		for n := range 3 {
			j := faktory.NewJob("Number", 3*i+n)
			j.Queue = "numbers"
			check(t, c.Push(j))
		}
		if version == server.FaktoryOld {
			s.Stop(harness.Patience)
			continue
		}
		t.Cleanup(func() { s.Stop(10 * time.Second) })
		retries := faktory.NewJob("Number", 6)
		retries.Queue = "retries" // the name of a set, too
		check(t, c.Push(retries))
	}
	r := runImport(t, b, "faktory", "unix:"+dir+"/db/redis.sock", "--to", b.Faktory)
	equal(t, "report", r.text(), "numbers ready 6 6 0\nretries ready 1 1 0\n")
	var got []string
	for _, j := range importedJobs(t, b, "--queue", "numbers", "--sort", "queue") {
		got = append(got, fmt.Sprint(j.Args[0]))
	}
	equal(t, "order", fmt.Sprint(got), "[0 1 2 3 4 5]")
}

// TestImportOfForegroundJobsOfSeveralFunctions has clients that wait for jobs of two functions. Both get their results,
// although the function of the first job is drained before the second one is imported.
func TestImportOfForegroundJobsOfSeveralFunctions(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	address, to := startGearmandSource(t, b)
	functions := []string{"first", "second", "third"}
	clients := make(map[string]*gearmanclient.Client)
	for _, f := range functions {
		c, err := gearmanclient.Dial(address)
		check(t, err)
		defer func() { _ = c.Close() }() // every request was answered
		for i := range 3 {
			_, err = c.Submit(gearmanclient.SubmitJob, f, fmt.Sprint(f, i), "hello "+f)
			check(t, err)
		}
		clients[f] = c
	}
	cmd := importCommand(t, b, "gearmand", address, to...)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	harness.Eventually(t, func() string { // all of them are here before the first one is done
		for _, f := range functions {
			if n := readyOf(t, b, f); n < 3 {
				return fmt.Sprintf("%d jobs of %s", n, f)
			}
		}
		return ""
	})
	for _, f := range functions {
		w, err := gearmanclient.Dial(b.Gearman)
		check(t, err)
		defer func() { _ = w.Close() }() // every request was answered
		check(t, w.Send(gearmanclient.CanDo, f))
		for range 3 {
			job, _, _, body, err := w.Grab(harness.Patience)
			check(t, err)
			check(t, w.Send(gearmanclient.WorkComplete, job, "result of "+body))
		}
	}
	for _, f := range functions {
		for range 3 {
			p, err := clients[f].Expect(gearmanclient.WorkComplete, harness.Patience)
			check(t, err)
			if !strings.HasSuffix(string(p.Data), "\x00result of hello "+f) {
				t.Errorf("result %q", p.Data)
			}
		}
	}
	var r importReport
	check(t, json.NewDecoder(out).Decode(&r))
	check(t, cmd.Wait())
	equal(t, "report", r.text(), "first ready 3 3 0\nsecond ready 3 3 0\nthird ready 3 3 0\n")
}

// TestImportOfAPersistentGearmandQueue follows from-gearmand.md: gearmand loads its own queue, and the import takes it.
func TestImportOfAPersistentGearmandQueue(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	harness.Need(t, "gearmand")
	b := harness.Start(t, harness.Options{})
	dir := t.TempDir()
	queue := []string{"-q", "libsqlite3", "--libsqlite3-db=" + filepath.Join(dir, "gearmand.db")}
	s, err := server.StartGearmand(dir, queue...)
	check(t, err)
	fillGearmand(t, s.Addr, 20)
	s.Kill()
	s, err = server.StartGearmand(dir, queue...)
	check(t, err)
	t.Cleanup(s.Kill)
	r := runImport(t, b, "gearmand", s.Addr, "--to", b.Gearman)
	equal(t, "report", r.text(), "numbers ready 20 20 0\n")
	s.Kill()
	again, err := server.StartGearmand(dir, queue...)
	check(t, err)
	t.Cleanup(again.Kill)
	r = runImport(t, b, "gearmand", again.Addr, "--to", b.Gearman)
	equal(t, "second report", r.text(), "")
}

// TestImportStopsWhenAllJobsAreRefused has a broker that takes no jobs at all.
func TestImportStopsWhenAllJobsAreRefused(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Config: "[gearman]\nmax_body = 1\n"})
	address, to := startGearmandSource(t, b)
	fillGearmand(t, address, 1500)
	out, err := importCommand(t, b, "gearmand", address, to...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "refused 1000 jobs in a row") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestImportOfChosenQueuesLeavesTheOthers(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	const jobs = 20
	for _, s := range importSources {
		t.Run(fmt.Sprintf("%s redis=%t", s.name, s.redis), func(t *testing.T) {
			t.Parallel()
			b := start(t)
			address, to := s.start(t, b)
			s.fill(t, address, jobs)
			equal(t, "moved of another queue",
				runImport(t, b, s.name, address, append(to, "--queues", "other")...).Moved, 0)
			equal(t, "moved of the queue",
				runImport(t, b, s.name, address, append(to, "--queues", "other,numbers")...).Moved, jobs)
		})
	}
}
