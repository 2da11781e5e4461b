package integration_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// importSource is a server whose jobs are imported.
type importSource struct {
	name  string
	redis bool // the Redis of a Faktory server
	// start starts the server and returns its address, and the flag that names the port of the broker.
	start func(t *testing.T, b *harness.Broker) (address string, to []string)
	// fill submits n jobs with the numbers 0 to n-1 as their bodies or first arguments.
	fill func(t *testing.T, address string, n int)
	// ordered says that the jobs keep their order if an import is killed. Elsewhere those that it had taken go to the
	// end.
	ordered bool
	// reserves says that the server does not notice that an import is killed, but waits until its reservations end.
	reserves bool
}

var importSources = []importSource{
	{name: "gearmand", start: startGearmandSource, fill: fillGearmand},
	{name: "faktory", start: startFaktorySource, fill: fillFaktory, reserves: true},
	{name: "faktory", redis: true, start: startRedisSource(server.Faktory), fill: fillRedis, ordered: true},
	{name: "faktory", redis: true, start: startRedisSource(server.FaktoryOld), fill: fillRedis, ordered: true},
	{name: "beanstalkd", start: startBeanstalkSource, fill: fillBeanstalk, ordered: true},
}

func startGearmandSource(t *testing.T, b *harness.Broker) (address string, to []string) {
	harness.Need(t, "gearmand")
	s, err := server.StartGearmand(t.TempDir())
	check(t, err)
	t.Cleanup(s.Kill)
	return s.Addr, []string{"--to", b.Gearman}
}

func fillGearmand(t *testing.T, address string, n int) {
	c, err := gearmanclient.Dial(address)
	check(t, err)
	defer func() { _ = c.Close() }() // every request was answered
	for i := range n {
		_, err := c.Submit(gearmanclient.SubmitJobBg, "numbers", fmt.Sprint("unique-", i), fmt.Sprint(i))
		check(t, err)
	}
}

func startFaktorySource(t *testing.T, b *harness.Broker) (address string, to []string) {
	harness.Need(t, "redis-server")
	s, err := server.StartFaktory(harness.Reference(t), t.TempDir(), "")
	check(t, err)
	t.Cleanup(func() { s.Stop(10 * time.Second) })
	return s.Addr, []string{"--to", b.Faktory}
}

func fillFaktory(t *testing.T, address string, n int) {
	c := dialSourceFaktory(t, address)
	for i := range n {
		j := faktory.NewJob("Number", i)
		j.Queue = "numbers"
		check(t, c.Push(j))
	}
}

func dialSourceFaktory(t *testing.T, address string) *faktory.Client {
	t.Helper()
	at := &harness.Broker{BrokerServer: &server.BrokerServer{Faktory: address}}
	c, err := harness.OpenFaktory(at, harness.Patience)
	check(t, err)
	t.Cleanup(func() { _ = c.Close() }) // every command was answered
	return c
}

// redisOfFaktory is the port of the Faktory server whose Redis is at an address.
var redisOfFaktory sync.Map

func startRedisSource(version string) func(t *testing.T, b *harness.Broker) (address string, to []string) {
	return func(t *testing.T, b *harness.Broker) (address string, to []string) {
		harness.Need(t, "redis-server")
		dir := t.TempDir()
		s, err := server.StartFaktory(harness.FaktoryServer(t, version), dir, "")
		check(t, err)
		t.Cleanup(func() { s.Stop(10 * time.Second) })
		address = "unix:" + dir + "/db/redis.sock"
		redisOfFaktory.Store(address, s.Addr)
		return address, []string{"--to", b.Faktory}
	}
}

func faktoryOf(redis string) string {
	address, _ := redisOfFaktory.Load(redis)
	return address.(string)
}

func fillRedis(t *testing.T, address string, n int) { fillFaktory(t, faktoryOf(address), n) }

func startBeanstalkSource(t *testing.T, _ *harness.Broker) (address string, to []string) {
	harness.Need(t, "beanstalkd")
	s, err := server.StartBeanstalkd(t.TempDir())
	check(t, err)
	t.Cleanup(s.Kill)
	return s.Addr, nil
}

func fillBeanstalk(t *testing.T, address string, n int) {
	b := dialBeanstalk(t, address)
	b.say("USING", "use numbers")
	for i := range n {
		b.put(1024, 0, 60, fmt.Sprint(i))
	}
}

// beanstalkClient sends single commands to a beanstalkd.
type beanstalkClient struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dialBeanstalk(t *testing.T, address string) *beanstalkClient {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // every command was answered
	return &beanstalkClient{t: t, Conn: conn, r: bufio.NewReader(conn)}
}

// say sends a command and checks the first word of its reply.
func (b *beanstalkClient) say(want, command string) string {
	b.t.Helper()
	_, err := fmt.Fprint(b.Conn, command+"\r\n")
	check(b.t, err)
	line, err := b.r.ReadString('\n')
	check(b.t, err)
	if !strings.HasPrefix(line, want) {
		b.t.Fatalf("%q: %q", command, line)
	}
	return strings.TrimSpace(line)
}

func (b *beanstalkClient) put(priority, delay, ttr int, body string) {
	b.t.Helper()
	b.say("INSERTED", fmt.Sprintf("put %d %d %d %d\r\n%s", priority, delay, ttr, len(body), body))
}

// importReport is what broker import -o json prints.
type importReport struct {
	Rows []struct {
		Queue, State, Reason         string
		Before, Moved, Left, Refused int
	}
	Before, Moved, Left, Refused int
	Paused                       []string
}

func (r *importReport) text() string {
	var b strings.Builder
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "%s %s %d %d %d\n", row.Queue, row.State, row.Before, row.Moved, row.Left)
	}
	return b.String()
}

// importCommand is broker import into b.
func importCommand(t *testing.T, b *harness.Broker, from, address string, to ...string) *exec.Cmd {
	args := append([]string{"import", "--from", from, address, "-o", "json", "--server", "http://" + b.HTTP}, to...)
	return exec.CommandContext(t.Context(), harness.Binary(t), args...)
}

// exitLeft is the exit code of an import that leaves jobs at the source.
const exitLeft = 9

// runImport runs an import that moves everything.
func runImport(t *testing.T, b *harness.Broker, from, address string, to ...string) importReport {
	t.Helper()
	return endImport(t, 0, importCommand(t, b, from, address, to...))
}

// runPartialImport runs an import that leaves jobs at the source.
func runPartialImport(t *testing.T, b *harness.Broker, from, address string, to ...string) importReport {
	t.Helper()
	return endImport(t, exitLeft, importCommand(t, b, from, address, to...))
}

// endImport runs an import and checks its exit code.
func endImport(t *testing.T, code int, cmd *exec.Cmd) (r importReport) {
	t.Helper()
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		t.Fatalf("%v, not exit code %d\n%s%s", err, code, out, errs.String())
	}
	check(t, json.Unmarshal(out, &r))
	return r
}

// TestImportThatIsKilledLosesNothing kills imports with SIGKILL and starts them again, until all jobs are here, each of
// them once, since repeated submissions are recognised.
func TestImportThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	jobs, kills := 3000, 4
	if harness.Nightly {
		jobs, kills = 50_000, 20
	}
	for _, s := range importSources {
		t.Run(fmt.Sprintf("%s redis=%t", s.name, s.redis), func(t *testing.T) {
			t.Parallel()
			killImports(t, s, jobs, kills)
		})
	}
}

func killImports(t *testing.T, s importSource, jobs, kills int) {
	t.Helper()
	b := harness.Start(t, harness.Options{})
	address, to := s.start(t, b)
	s.fill(t, address, jobs)
	killed := 0
	for k := range kills {
		cmd := importCommand(t, b, s.name, address, to...)
		check(t, cmd.Start())
		harness.Eventually(t, func() string {
			for range 50 { // in quick succession: an import takes a moment only
				if readyOf(t, b, "numbers") >= (k+1)*jobs/(kills+2) {
					return ""
				}
			}
			return s.name + ": the import makes no progress"
		})
		check(t, cmd.Process.Kill())
		if err := cmd.Wait(); err != nil {
			killed++
		}
	}
	if killed == 0 {
		t.Errorf("%s: each import was over before it was killed", s.name)
	}
	cmd := importCommand(t, b, s.name, address, to...)
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); err != nil && !(s.reserves && code == exitLeft) {
		t.Fatalf("%s: exit code %d: %s", s.name, code, out)
	}
	var r importReport
	check(t, json.Unmarshal(out, &r))
	checkImported(t, b, s, r, jobs)
}

// checkImported checks that the jobs with the numbers below n are here, each of them once. Those that a killed import
// had fetched from a Faktory server may still be reserved there.
func checkImported(t *testing.T, b *harness.Broker, s importSource, r importReport, n int) {
	t.Helper()
	reserved := 0
	for _, row := range r.Rows {
		if row.State == "leased" && s.reserves {
			reserved = row.Left
		} else if row.Left > 0 {
			t.Errorf("%s: left at the source: %d %s", s.name, row.Left, row.State)
		}
	}
	seen := make(map[string]bool)
	var got []string
	for _, j := range importedJobs(t, b, "--queue", "numbers", "--sort", "queue") {
		if j.Body == "" {
			j.Body = fmt.Sprint(j.Args[0])
		}
		if seen[j.Body] {
			t.Errorf("%s: job %s is here twice", s.name, j.Body)
		}
		seen[j.Body] = true
		got = append(got, j.Body)
	}
	if missing := n - len(got); missing > reserved {
		t.Errorf("%s: %d jobs are missing, %d are reserved at the source", s.name, missing, reserved)
	}
	if s.ordered && !slices.IsSortedFunc(got, compareNumbers) {
		t.Errorf("%s: the jobs are out of order", s.name)
	}
}

func compareNumbers(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// readyOf is how many jobs of a queue are ready.
func readyOf(t *testing.T, b *harness.Broker, queue string) int {
	t.Helper()
	return queueOf(t, b, queue).Ready
}

func TestImportFromGearmand(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	address, to := startGearmandSource(t, b)
	c, err := gearmanclient.Dial(address)
	check(t, err)
	defer func() { _ = c.Close() }() // every request was answered
	for i, kind := range []gearmanclient.Type{
		gearmanclient.SubmitJobLowBg, gearmanclient.SubmitJobBg, gearmanclient.SubmitJobHighBg,
	} {
		_, err := c.Submit(kind, "mixed", fmt.Sprint("unique", i), "body\x00"+fmt.Sprint(i))
		check(t, err)
	}
	handle, err := c.Submit(gearmanclient.SubmitJob, "waits", "unique", "hello")
	check(t, err)

	nameless, err := gearmanclient.Dial(address)
	check(t, err)
	defer func() { _ = nameless.Close() }() // every request was answered
	_, err = nameless.Submit(gearmanclient.SubmitJob, "nameless", "", "x")
	check(t, err)

	finished := make(chan importReport, 1)
	go func() { finished <- runImport(t, b, "gearmand", address, to...) }() // ends with its command
	w, err := gearmanclient.Dial(b.Gearman)
	check(t, err)
	defer func() { _ = w.Close() }() // every request was answered
	check(t, w.Send(gearmanclient.CanDo, "waits"))
	var job string
	harness.Eventually(t, func() string {
		var body string
		if job, _, _, body, err = w.Grab(harness.Patience); err != nil || job == "" {
			return fmt.Sprint("no job: ", err)
		}
		equal(t, "body", body, "hello")
		return ""
	})
	check(t, w.Send(gearmanclient.WorkStatus, job, "1", "2"))
	check(t, w.Send(gearmanclient.WorkData, job, "part"))
	check(t, w.Send(gearmanclient.WorkComplete, job, "olleh"))
	for _, want := range []struct {
		kind gearmanclient.Type
		text string
	}{{gearmanclient.WorkStatus, "1\x002"}, {gearmanclient.WorkData, "part"}, {gearmanclient.WorkComplete, "olleh"}} {
		p, err := c.Expect(want.kind, harness.Patience)
		check(t, err)
		equal(t, "packet to the client of the source", string(p.Data), handle+"\x00"+want.text)
	}
	r := <-finished
	equal(t, "report", r.text(), "mixed ready 3 3 0\nnameless ready 1 1 0\nwaits ready 1 1 0\n")
	_, err = nameless.Expect(gearmanclient.WorkFail, harness.Patience) // no false success
	check(t, err)
	var got []string
	for _, j := range importedJobs(t, b, "--queue", "mixed", "--sort", "queue") {
		got = append(got, fmt.Sprintf("%d %q", j.Priority, j.Body))
	}
	equal(t, "jobs", strings.Join(got, ", "), `1 "body\x002", 0 "body\x001", -1 "body\x000"`)
}

func TestImportFromFaktorysRedis(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	address, to := startRedisSource(server.Faktory)(t, b)
	c := dialSourceFaktory(t, faktoryOf(address))
	later := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
	push := func(typ, queue string, at time.Time) {
		j := faktory.NewJob(typ, "<a>", 12345678901234567)
		if typ == "Retries" {
			patient(j)
		}
		j.Queue = queue
		if !at.IsZero() {
			j.At = at.Format(time.RFC3339Nano)
		}
		check(t, c.Push(j))
	}
	failed := func(typ string) {
		push(typ, "failing", time.Time{})
		j, err := c.Fetch("failing")
		check(t, err)
		check(t, c.Fail(j.Jid, fmt.Errorf("no way"), nil))
	}
	failed("Dies")
	check(t, c.Kill(faktory.Retries, faktory.Everything))
	failed("Retries")
	push("Later", "plain", later)
	push("Now", "plain", time.Time{})
	push("Held", "held", time.Time{})
	_, err := c.Fetch("held")
	check(t, err)
	check(t, c.PauseQueues("plain"))

	r := runPartialImport(t, b, "faktory", address, to...)
	equal(t, "report", r.text(),
		"(all) dead 1 1 0\n(all) leased 1 0 1\n(all) retrying 1 1 0\n(all) scheduled 1 1 0\nplain ready 1 1 0\n")
	equal(t, "paused queues", fmt.Sprint(r.Paused), "[plain]")
	r = runImport(t, b, "faktory", address, append(to, "--leased")...)
	equal(t, "report", r.text(), "(all) leased 1 1 0\n")
	got := make(map[string]importedJob)
	b.Crash()
	b.Restart()
	for _, j := range importedJobs(t, b) {
		got[j.Type] = j
		equal(t, "arguments of "+j.Type, fmt.Sprint(j.Args[0]), "<a>")
	}
	for typ, want := range map[string]string{
		"Dies": "failing dead 1", "Retries": "failing scheduled 12", "Later": "plain scheduled 0",
		"Now": "plain ready 0", "Held": "held ready 0",
	} {
		j := got[typ]
		equal(t, typ, fmt.Sprintf("%s %s %d", j.Queue, j.State, j.Fails), want)
	}
	failures := make(map[string]string)
	for _, j := range listedJobs(t, b) {
		if f := j.Failure; f != nil {
			failures[j.Type] = fmt.Sprintf("%s %s %d %s", f.Type, f.Message, f.Count, j.FailureGroup)
			if age := time.Since(f.FailedAt); age < 0 || age > time.Hour {
				t.Errorf("%s failed %v ago", j.Type, age)
			}
		}
	}
	equal(t, "failures", fmt.Sprint(failures), "map[Dies:unknown no way 1 unknown Retries:unknown no way 12 ]")
	for _, filter := range []string{"--error-class", "--failure-group"} {
		found := listedJobs(t, b, filter, "unknown", "--state", "dead")
		if len(found) != 1 || found[0].Type != "Dies" {
			t.Errorf("dead jobs by %s: %+v", filter, found)
		}
	}
	equal(t, "time of the scheduled job", got["Later"].RunAt.UTC(), later)
	equal(t, "paused here", pausedHere(t, b, "plain"), true)
}

func TestImportFromBeanstalkd(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	address, _ := startBeanstalkSource(t, b)
	c := dialBeanstalk(t, address)
	c.say("USING", "use mail")
	c.put(1024, 0, 90, "\xff\xfe")
	c.put(1, 0, 60, "urgent")
	c.put(1024, 3600, 60, "later")
	c.say("USING", "use broken")
	c.put(4294967295, 0, 60, "buried")
	c.say("WATCHING", "watch broken")
	id := strings.Fields(c.say("RESERVED", "reserve"))[1]
	_, err := c.r.ReadString('\n')
	check(t, err)
	c.say("BURIED", "bury "+id+" 4294967295")

	r := runImport(t, b, "beanstalkd", address)
	equal(t, "report", r.text(), "broken dead 1 1 0\nmail ready 2 2 0\nmail scheduled 1 1 0\n")
	var got []string
	for _, j := range importedJobs(t, b) {
		got = append(got, fmt.Sprintf("%s %s %d %q %v", j.Queue, j.State, j.Priority, j.Body, j.LeaseForS))
		if j.State == "scheduled" && time.Until(j.RunAt) < 50*time.Minute {
			t.Errorf("the delayed job is due at %v", j.RunAt)
		}
	}
	slices.Sort(got)
	equal(t, "jobs", strings.Join(got, "\n"), strings.Join([]string{
		`broken dead -4294966271 "buried" 60`, `mail ready 0 "" 90`, `mail ready 1023 "urgent" 60`,
		`mail scheduled 0 "later" 60`,
	}, "\n"))
}

func TestImportRefusesToMoveJobsInACircle(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	out, err := importCommand(t, b, "gearmand", b.Gearman, "--to", b.Gearman).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "would never end") {
		t.Errorf("%v\n%s", err, out)
	}
}
