package integration_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
	"broker/integration/server"
)

// hostileFault is a fault as the API lists it.
type hostileFault struct {
	Fault, Queue, Job, Detail, Protocol string
	Submission                          int
}

// startHostile starts a broker that is unreliable on purpose.
func startHostile(t *testing.T, faults string) *harness.Broker {
	t.Helper()
	at := startHostileAt(t, faults)
	return &harness.Broker{BrokerServer: &server.BrokerServer{
		Gearman: at["gearman"], Faktory: at["faktory"], HTTP: at["http"],
	}}
}

// startHostileAt is startHostile with the addresses of all protocols.
func startHostileAt(t *testing.T, faults string) map[string]string {
	t.Helper()
	_, at := spawnHostile(t, faults)
	return at
}

// spawnHostile is startHostileAt with the process.
func spawnHostile(t *testing.T, faults string) (*harness.Child, map[string]string) {
	t.Helper()
	at := make(map[string]string)
	argv := []string{harness.Binary(t), "test", "--seed", "3", "--faults", faults}
	for _, name := range []string{"workq", "gearman", "faktory", "http", "beanstalk", "qless", "conveyor", "sqs"} {
		free, err := server.FreeAddr()
		check(t, err)
		at[name] = free
		argv = append(argv, "--"+name, free)
	}
	child := harness.Spawn(t, harness.Command{Argv: argv})
	child.AwaitLines(1, func(line string) bool { return line == "ready" })
	return child, at
}

// hostileFaults are the faults that have happened, without the ids of jobs.
func hostileFaults(t *testing.T, b *harness.Broker) (all []hostileFault) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.HTTP+"/api/v1/faults", http.NoBody)
	check(t, err)
	resp, err := http.DefaultClient.Do(req)
	check(t, err)
	defer func() { _ = resp.Body.Close() }() // read
	var page struct {
		Seed   int
		Faults []hostileFault
	}
	check(t, json.NewDecoder(resp.Body).Decode(&page))
	equal(t, "seed", page.Seed, 3)
	for i := range page.Faults {
		page.Faults[i].Job = ""
	}
	return page.Faults
}

// The gearman command meets the same faults in two brokers with the same seed.
func TestHostileBrokersWithTheSameSeedBehaveAlike(t *testing.T) {
	t.Parallel()
	harness.Need(t, "gearman")
	var runs [2][]hostileFault
	for i := range runs {
		b := startHostile(t, "drop=0.2,busy=0.2,reorder=0.2")
		refused, lost := 0, 0
		for n := range 12 {
			host, port := server.Split(b.Gearman)
			r := harness.Exec(t, harness.Command{
				Argv: []string{"gearman", "-h", host, "-p", port, "-b", "-f", "rev"}, Stdin: fmt.Sprint("body", n),
			})
			switch {
			case strings.Contains(r.Stderr, "Job queue is full"):
				refused++
			case strings.Contains(r.Stderr, "GEARMAN_LOST_CONNECTION"):
				lost++
			}
		}
		runs[i] = hostileFaults(t, b)
		count := func(kind string) (n int) {
			for _, f := range runs[i] {
				if f.Fault == kind {
					n++
				}
			}
			return n
		}
		if refused == 0 || lost == 0 || refused != count("busy") || lost != count("drop") {
			t.Errorf("clients were refused %d times and lost %d connections, the broker says %+v", refused, lost,
				runs[i])
		}
	}
	if !slices.Equal(runs[0], runs[1]) {
		t.Errorf("first  %+v\nsecond %+v", runs[0], runs[1])
	}
}

// The official Faktory client gets a job again whose ACK was accepted.
func TestHostileBrokerDeliversTwiceToFaktoryWorker(t *testing.T) {
	t.Parallel()
	b := startHostile(t, "duplicate=1")
	c, err := harness.OpenFaktory(b, harness.Patience)
	check(t, err)
	t.Cleanup(func() { _ = c.Close() }) // the broker may be gone
	job := faktory.NewJob("mail", 1)
	job.Queue = "mails"
	check(t, c.Push(job))
	for run := range 2 {
		got := fetchSoon(t, c, "mails")
		if got.Jid != job.Jid {
			t.Fatalf("delivery %d: got %+v", run+1, got)
		}
		check(t, c.Ack(got.Jid))
	}
	equal(t, "faults", hostileFaults(t, b), []hostileFault{
		{
			Fault: "duplicate", Protocol: "faktory", Queue: "mails", Submission: 1,
			Detail: "completion acknowledged and lost: delivered again",
		},
	})
}

// A worker that counts its runs fails the verdict at the end, with an exit code for test suites. An idempotent one
// passes it.
func TestHostileBrokerJudgesWorkers(t *testing.T) {
	t.Parallel()
	for name, this := range map[string]struct {
		results []string // of the two runs of a job
		code    int
		verdict []string
	}{
		"idempotent": {
			results: []string{"1", "1"},
			verdict: []string{
				"verdict: passed; jobs delivered: 1",
				"1 completed more than once, as a broker may cause; look whether their effects happened once:",
				"  submission 1 to mail, job ID: completed 2 times; deliveries: 2",
			},
		},
		"counting": {
			results: []string{"1", "2"}, code: 12,
			verdict: []string{
				"verdict: FAILED; jobs delivered: 1",
				"1 ended twice with different results:",
				"  submission 1 to mail, job ID: completed with a result (1 B), then with another (1 B); deliveries: 2",
				"repeat it with --seed 3 --faults duplicate=1",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child, at := spawnHostile(t, "duplicate=1")
			c := harness.DialWorkq(t, &harness.Broker{BrokerServer: &server.BrokerServer{Workq: at["workq"]}})
			job := wqJob("mail", "x")
			check(t, c.Add(job))
			for _, result := range this.results {
				l, err := c.Lease(harness.Patience, "mail")
				check(t, err)
				equal(t, "id", l.ID, job.ID)
				check(t, c.Complete(job.ID, []byte(result)))
			}
			check(t, child.Signal(syscall.SIGTERM))
			code, err := child.Wait(harness.Patience)
			check(t, err)
			equal(t, "exit code", code, this.code)
			lines, _ := child.Lines.Snapshot()
			begins := func(line string) bool { return strings.HasPrefix(line, "verdict") }
			lines = lines[slices.IndexFunc(lines, begins):]
			for i := range lines {
				lines[i] = strings.ReplaceAll(lines[i], job.ID, "ID")
			}
			equal(t, "verdict", lines, this.verdict)
		})
	}
}
