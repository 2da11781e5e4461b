package integration_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// cliWorker runs the gearman command in worker mode with a program that reads standard input.
func cliWorker(t *testing.T, b *harness.Broker, function string, command ...string) {
	t.Helper()
	host, port := server.Split(b.Gearman)
	argv := append([]string{"gearman", "-h", host, "-p", port, "-w", "-f", function, "--"}, command...)
	harness.Spawn(t, harness.Command{Argv: argv})
	harness.Eventually(t, func() string {
		if row := statusRow(t, b, function); !strings.HasSuffix(row, " 1") {
			return fmt.Sprintf("no worker for %s: %q", function, row)
		}
		return ""
	})
}

func TestGearmanCommandLineClientAndWorker(t *testing.T) {
	t.Parallel()
	harness.Need(t, "gearman")
	b := start(t)
	cliWorker(t, b, "upper", "tr", "a-z", "A-Z")
	equal(t, "one job", gearmanCLI(t, b, "hello\n", "-f", "upper"), "HELLO\n")
	equal(t, "high priority", gearmanCLI(t, b, "high\n", "-I", "-f", "upper"), "HIGH\n")
	equal(t, "low priority", gearmanCLI(t, b, "low\n", "-L", "-f", "upper"), "LOW\n")
	equal(t, "unique", gearmanCLI(t, b, "u\n", "-u", "key", "-f", "upper"), "U\n")
	equal(t, "a job a line", gearmanCLI(t, b, "a\nb\nc\n", "-n", "-f", "upper"), "A\nB\nC\n")
	equal(t, "with the name before", gearmanCLI(t, b, "a\nb\n", "-n", "-P", "-f", "upper"), "upper: A\nupper: B\n")
	equal(t, "no input", gearmanCLI(t, b, "", "-s", "-f", "upper"), "")
	// gearman writes the whole body before it reads: a program that writes while it reads would block it.
	cliWorker(t, b, "count", "wc", "-c")
	equal(t, "a megabyte", gearmanCLI(t, b, strings.Repeat("x", 1<<20), "-f", "count"), "1048576\n")
}

func TestGearmanCommandLineBackgroundJobsWaitForAWorker(t *testing.T) {
	t.Parallel()
	harness.Need(t, "gearman")
	b := start(t)
	for range 3 {
		gearmanCLI(t, b, "again", "-b", "-u", "same", "-f", "later")
	}
	equal(t, "submissions with one unique id make one job", statusRow(t, b, "later"), "1 0 0")
	for i := range 5 {
		gearmanCLI(t, b, fmt.Sprint(i), "-b", "-f", "later")
	}
	equal(t, "submissions without", statusRow(t, b, "later"), "6 0 0")
	w := phpWorker(t, b, "later=echo")
	equal(t, "bodies", bodies(w.Await("job", 6), "job"), []string{"0", "1", "2", "3", "4", "again"})
	awaitStatus(t, b, "later", "0 0 1")
}

func TestGearmanPrioritiesDecideTheOrder(t *testing.T) {
	t.Parallel()
	harness.Need(t, "gearman")
	b := start(t)
	for _, c := range []struct{ flag, body string }{{"-L", "low"}, {"-b", "normal"}, {"-I", "high"}} {
		for i := range 2 {
			gearmanCLI(t, b, fmt.Sprintf("%s-%d", c.body, i), "-b", c.flag, "-f", "ordered")
		}
	}
	w := harness.DialGearman(t, b)
	check(t, w.Send(gearmanclient.CanDo, "ordered"))
	var order []string
	for range 6 {
		handle, _, _, body, err := w.Grab(harness.Patience)
		check(t, err)
		order = append(order, body)
		check(t, w.Send(gearmanclient.WorkComplete, handle, ""))
	}
	equal(t, "order", order, []string{"high-0", "high-1", "normal-0", "normal-1", "low-0", "low-1"})
}

func TestGearadminReadsTheServer(t *testing.T) {
	t.Parallel()
	harness.Need(t, "gearman", "gearadmin")
	b := start(t)
	out := func(args ...string) string {
		t.Helper()
		r := gearadmin(t, b, args...)
		equal(t, fmt.Sprint("exit code of ", args, r.Stderr), r.Code, 0)
		return r.Stdout
	}
	matches := func(pattern string, args ...string) {
		t.Helper()
		if got := out(args...); !regexp.MustCompile("^(?s:" + pattern + ")$").MatchString(got) {
			t.Errorf("gearadmin %q: %q does not match %s", args, got, pattern)
		}
	}
	w := phpWorker(t, b, "held=hold")
	gearmanCLI(t, b, "x", "-b", "-u", "running", "-f", "held")
	w.Await("job", 1)
	gearmanCLI(t, b, "x", "-b", "-u", "waiting-high", "-I", "-f", "held")
	gearmanCLI(t, b, "x", "-b", "-u", "waiting-low", "-L", "-f", "other")

	matches(`\S+\n`, "--server-version")
	matches(`[A-Z]+\n`, "--server-verbose")
	matches(fmt.Sprintf("%d\n", b.PID()), "--getpid")
	matches("held\t2\t1\t1\nother\t1\t0\t0\n\\.\n|other\t1\t0\t0\nheld\t2\t1\t1\n\\.\n", "--status")
	matches("held\t1\t0\t0\t1\nother\t0\t0\t1\t0\n\\.\n|other\t0\t0\t1\t0\nheld\t1\t0\t0\t1\n\\.\n",
		"--priority-status")
	matches(`.*\d+ 127\.0\.0\.1 \S+ : held\n.*\.\n`, "--workers")
	matches(`(H:\S+:\d+\t\d+\t\d+\t[01]\n){3}\.\n`, "--show-jobs")
	for _, unique := range []string{"running", "waiting-high", "waiting-low"} {
		matches(`(.*\n)?`+unique+`\n.*\.\n`, "--show-unique-jobs")
	}
}

func TestGearadminChangesTheServer(t *testing.T) {
	t.Parallel()
	harness.Need(t, "gearman", "gearadmin")
	b := start(t)
	ok := func(want string, args ...string) {
		t.Helper()
		r := gearadmin(t, b, args...)
		equal(t, fmt.Sprint(args, r.Stderr), r.Stdout, want)
	}
	ok("OK\n", "--create-function=made")
	equal(t, "status after create", statusRow(t, b, "made"), "0 0 0")
	ok("OK\n", "--drop-function=made")
	equal(t, "status after drop", statusRow(t, b, "made"), "")
	r := gearadmin(t, b, "--drop-function=made")
	equal(t, "drop of what is not there", strings.TrimSpace(r.Stderr), "Error: function not found")

	handle := only(t, phpClientNeeded(t, b, "x", "background", "normal", "canceled"), "created").ID
	equal(t, "before cancel", statusRow(t, b, "canceled"), "1 0 0")
	ok("OK\n", "--cancel-job="+handle)
	equal(t, "job after cancel", only(t, phpClient(t, b, "", "status", handle), "jobstatus").Active, false)
	r = gearadmin(t, b, "--cancel-job=H:nowhere:4711")
	equal(t, "cancel of what is not there", strings.TrimSpace(r.Stderr), "Error: UNKNOWN_JOB")
}

func TestCanceledGearmanJobIsGoneAtOnce(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t) // gearmand counts it until a worker asks for it
	harness.Need(t, "gearadmin")
	b := start(t)
	handle := only(t, phpClientNeeded(t, b, "x", "background", "normal", "canceled", "key"), "created").ID
	equal(t, "cancel", gearadmin(t, b, "--cancel-job="+handle).Stdout, "OK\n")
	equal(t, "status", statusRow(t, b, "canceled"), "0 0 0")
	equal(t, "known", only(t, phpClient(t, b, "", "status", handle), "jobstatus").Known, false)
	again := only(t, phpClient(t, b, "x", "background", "normal", "canceled", "key"), "created").ID
	equal(t, "the unique id is free", again != handle, true)
}

func phpClientNeeded(t *testing.T, b *harness.Broker, body string, args ...string) []harness.Event {
	t.Helper()
	harness.Need(t, "php", "php-gearman")
	return phpClient(t, b, body, args...)
}
