package integration_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// archiveLag is how far the archive of a broker is behind; the second value is when that was asked.
func archiveLag(t *testing.T, b *harness.Broker) (lag time.Duration, asked time.Time) {
	t.Helper()
	asked = time.Now()
	status, body, err := b.Get("/metrics")
	check(t, err)
	equal(t, "status of /metrics", status, 200)
	for line := range strings.Lines(body) {
		if text, ok := strings.CutPrefix(line, "broker_archive_lag_seconds "); ok {
			s, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			check(t, err)
			return time.Duration(s * float64(time.Second)), asked
		}
	}
	t.Fatal("there is no broker_archive_lag_seconds")
	return 0, asked
}

// awaitArchive waits until the archive has everything.
func awaitArchive(t *testing.T, b *harness.Broker) {
	t.Helper()
	harness.Eventually(t, func() string {
		if lag, _ := archiveLag(t, b); lag > 0 {
			return fmt.Sprintf("the archive is %v behind", lag)
		}
		return ""
	})
}

// archiveState is the archive in the broker's account of its storage.
type archiveState struct {
	Dir        string    `json:"dir"`
	LagS       float64   `json:"lag_s"`
	Earliest   time.Time `json:"earliest"`
	BaseAt     time.Time `json:"base_at"`
	Bytes      int       `json:"bytes"`
	Commits    int       `json:"shipped_commits"`
	Shipped    int       `json:"shipped_bytes"`
	BaseCopies int       `json:"base_copies"`
	Overflows  int       `json:"overflows"`
	Failures   int       `json:"failures"`
	Error      string    `json:"error"`
}

func archiveOf(t *testing.T, b *harness.Broker) archiveState {
	t.Helper()
	status, body, err := b.Get("/api/v1/storage")
	check(t, err)
	equal(t, "status of /storage: "+body, status, 200)
	var storage struct {
		Archive *archiveState `json:"archive"`
	}
	check(t, json.Unmarshal([]byte(body), &storage))
	if storage.Archive == nil {
		t.Fatalf("/storage has no archive: %s", body)
	}
	return *storage.Archive
}

// archivedLoad submits jobs over several connections.
type archivedLoad struct {
	mu    sync.Mutex
	acked map[string]time.Time
	next  map[string]time.Time // when the connection's next job was acknowledged
	worst time.Duration        // longest time that a client has waited
	wait  sync.WaitGroup
	stop  chan struct{}
}

func beginArchivedLoad(t *testing.T, b *harness.Broker, name string) *archivedLoad {
	t.Helper()
	l := &archivedLoad{acked: map[string]time.Time{}, next: map[string]time.Time{}, stop: make(chan struct{})}
	for n := range 3 {
		c := harness.DialGearman(t, b)
		l.wait.Go(func() { // ends with stop, or with the broker
			last := ""
			for i := 0; ; i++ {
				select {
				case <-l.stop:
					return
				default:
				}
				body := fmt.Sprintf("%s-%d-%d-%s", name, n, i, strings.Repeat("x", 200))
				begin := time.Now()
				if _, err := c.Submit(gearmanclient.SubmitJobBg, "archived", "", body); err != nil {
					return
				}
				l.mu.Lock()
				l.acked[body] = time.Now()
				l.next[last], last = l.acked[body], body
				l.worst = max(l.worst, time.Since(begin))
				l.mu.Unlock()
			}
		})
	}
	return l
}

// end ends the load; it returns what an archive has that was so far behind when it was asked, and the number of other
// jobs. A reply may leave a moment before the archive knows of its commit, but not before it knows of earlier ones.
func (l *archivedLoad) end(asked time.Time, lag time.Duration) (older []string, others int) {
	close(l.stop)
	l.wait.Wait()
	for body, at := range l.acked {
		if next, found := l.next[body]; found && next.Before(asked) && at.Before(asked.Add(-lag)) {
			older = append(older, body)
		} else {
			others++
		}
	}
	return older, others
}

func TestArchiveHasEverythingThatIsOlderThanItsLag(t *testing.T) {
	harness.BrokerOnly(t)
	t.Parallel()
	rounds := 3
	if harness.Nightly {
		rounds = 50
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "archive")
	b := harness.Prepare(t,
		harness.Options{Config: fmt.Sprintf("[archive]\ndir = %q\nevery = \"300ms\"\nbase_every = \"1m\"\n", archive)})
	b.Restart()
	for round := range rounds {
		awaitArchive(t, b)
		l := beginArchivedLoad(t, b, fmt.Sprint("r", round))
		time.Sleep(300*time.Millisecond + rand.N(1500*time.Millisecond)) // the broker must die under load
		lag, asked := archiveLag(t, b)
		b.Crash()
		want, more := l.end(asked, lag)
		check(t, os.RemoveAll(b.Data))
		b.Data = filepath.Join(dir, fmt.Sprint("data", round))
		r := brokerCommand(t, "restore", "--from", archive, "--to", b.Data)
		equal(t, "exit code of restore: "+r.Stderr, r.Code, 0)
		b.Restart()
		found := map[string]bool{}
		for _, body := range drainInOrder(t, b, "archived") {
			found[body] = true
			if !strings.HasPrefix(body, fmt.Sprintf("r%d-", round)) {
				t.Errorf("round %d: %.20s was done before", round, body)
			}
		}
		for _, body := range want {
			if !found[body] {
				t.Fatalf("round %d: %.20s was acknowledged at %v, asked for a lag of %v at %v, and is missing", round,
					body, l.acked[body], lag, asked)
			}
		}
		t.Logf("round %d: lag %v, %d jobs older, %d newer, %d restored", round, lag, len(want), more, len(found))
	}
	awaitArchive(t, b)
	b.Crash()
	r := brokerCommand(t, "doctor", archive)
	equal(t, "exit code of doctor: "+r.Stderr+r.Stdout, r.Code, 0)
}

func TestArchiveRestoresAMoment(t *testing.T) {
	harness.BrokerOnly(t)
	t.Parallel()
	archive := filepath.Join(t.TempDir(), "archive")
	b := harness.Start(t, harness.Options{Config: fmt.Sprintf("[archive]\ndir = %q\nevery = \"100ms\"\n", archive)})
	c := harness.DialGearman(t, b)
	type moment struct {
		at   time.Time
		jobs int
	}
	var moments []moment
	awaitArchive(t, b)
	for i := range 20 {
		_, err := c.Submit(gearmanclient.SubmitJobBg, "moments", "", fmt.Sprint(i))
		check(t, err)
		time.Sleep(30 * time.Millisecond) // moments differ
		moments = append(moments, moment{time.Now(), i + 1})
		time.Sleep(10 * time.Millisecond) // likewise
	}
	var a archiveState
	harness.Eventually(t, func() string { // a reply may leave a moment before the archive knows of its commit
		if a = archiveOf(t, b); a.Commits < 20 || a.LagS > 0 {
			return fmt.Sprintf("/storage says of the archive: %+v", a)
		}
		return ""
	})
	if a.Dir != archive || a.Shipped == 0 || a.Bytes == 0 || a.BaseCopies == 0 || a.Error != "" ||
		a.Failures != 0 {
		t.Errorf("/storage says of the archive: %+v", a)
	}
	if a.Earliest.IsZero() || a.Earliest.After(moments[0].at) || a.BaseAt.IsZero() {
		t.Errorf("earliest moment %v, copy of %v, first job %v", a.Earliest, a.BaseAt, moments[0].at)
	}
	code, _ := b.Terminate()
	equal(t, "exit code", code, 0)
	for _, m := range moments {
		if m.jobs%5 != 0 {
			continue
		}
		to := filepath.Join(t.TempDir(), "then")
		r := brokerCommand(t, "restore", "--from", archive, "--to", to, "--at", m.at.Format(time.RFC3339Nano))
		equal(t, "exit code of restore: "+r.Stderr, r.Code, 0)
		equal(t, "jobs at that moment", jobsOf(t, to), m.jobs)
	}
	r := brokerCommand(t, "restore", "--from", archive, "--to", filepath.Join(t.TempDir(), "x"), "--at", "2001-01-01")
	equal(t, "exit code for a moment before the archive", r.Code, 4)
	r = brokerCommand(t, "restore", "--from", archive, "--to", b.Data)
	equal(t, "exit code for a folder that is in use", r.Code, 7)
}

// jobsOf counts the jobs in a stopped store.
func jobsOf(t *testing.T, data string) (n int) {
	t.Helper()
	r := brokerCommand(t, "doctor", "-o", "json", data)
	equal(t, "exit code of doctor: "+r.Stderr, r.Code, 0)
	var report struct{ Jobs map[string]int }
	check(t, json.Unmarshal([]byte(r.Stdout), &report))
	for _, jobs := range report.Jobs {
		n += jobs
	}
	return n
}

// overflows matches the count of overflows in the metrics, of which a full archive may have several.
var overflows = regexp.MustCompile(`(?m)^broker_archive_overflows_total [1-9]`)

func TestFullArchiveDoesNotSlowClientsAndCatchesUp(t *testing.T) {
	harness.BrokerOnly(t)
	t.Parallel()
	disk := harness.NewSmallDisk(t, 256<<10)
	archive := filepath.Join(disk.Dir, "archive")
	b := harness.Start(t, harness.Options{Config: fmt.Sprintf(
		"[archive]\ndir = %q\nevery = \"100ms\"\nmax_queue = \"1 MiB\"\n", archive)})
	l := beginArchivedLoad(t, b, "full")
	harness.Eventually(t, func() string {
		_, body, err := b.Get("/metrics")
		check(t, err)
		if !overflows.MatchString(body) || !strings.Contains(body, "broker_archive_failing 1") {
			return "the archive is not full yet"
		}
		return ""
	})
	if lag, _ := archiveLag(t, b); lag < 100*time.Millisecond {
		t.Errorf("the lag of a full archive is %v", lag)
	}
	if a := archiveOf(t, b); a.Error == "" || a.Failures == 0 || a.Overflows == 0 || a.LagS < 0.1 {
		t.Errorf("/storage says of a full archive: %+v", a)
	}
	disk.Resize(256 << 20)
	l.end(time.Now(), 0)
	awaitArchive(t, b)
	b.Crash()
	to := filepath.Join(t.TempDir(), "restored")
	r := brokerCommand(t, "restore", "--from", archive, "--to", to)
	equal(t, "exit code of restore: "+r.Stderr, r.Code, 0)
	equal(t, "restored jobs", jobsOf(t, to), len(l.acked))
	t.Logf("%d jobs, none waited longer than %v", len(l.acked), l.worst)
	if harness.Nightly {
		harness.CheckDuration(t, "submit", l.worst, time.Second)
	}
}

func TestExplainSaysWhyAJobRanFirst(t *testing.T) {
	harness.BrokerOnly(t)
	t.Parallel()
	archive := filepath.Join(t.TempDir(), "archive")
	b := harness.Start(t, harness.Options{Config: fmt.Sprintf("[archive]\ndir = %q\nevery = \"100ms\"\n", archive)})
	awaitArchive(t, b)
	for _, job := range []string{`{"id":"slow","queue":"orders"}`, `{"id":"fast","queue":"orders","priority":5}`} {
		status, answer := post(t, b, "/api/v1/jobs", job)
		equal(t, "status: "+answer, status, 201)
	}
	for range 2 {
		status, answer := post(t, b, "/api/v1/leases", `{"queues":["orders"],"worker":"w1"}`)
		equal(t, "status: "+answer, status, 200)
	}
	awaitArchive(t, b)
	awaitTexts(t, func() string { // a reply may leave a moment before the archive knows of its commit
		r := brokerCommand(t, "explain", "--from", archive, "fast", "slow")
		if r.Code != 0 {
			return r.Stderr
		}
		return r.Stdout
	},
		"job fast, type orders, queue orders\n", "leased by worker \"w1\"",
		"job slow was ready too, with a lower priority (0, not 5)",
		"1 with a higher priority, 0 that were ready before it, 0 behind it (fast)")
	r := brokerCommand(t, "explain", "--from", archive, "-o", "json", "fast")
	var answer struct {
		Jobs []struct {
			ID     string
			Events []struct{ What string }
		}
	}
	if err := json.Unmarshal([]byte(r.Stdout), &answer); err != nil || len(answer.Jobs) != 1 ||
		len(answer.Jobs[0].Events) < 2 {
		t.Errorf("JSON: %v, %s", err, r.Stdout)
	}
	r = brokerCommand(t, "explain", "--from", archive, "nobody")
	equal(t, "exit code for an unknown job", r.Code, 4)
	r = brokerCommand(t, "explain", "fast")
	equal(t, "exit code without an archive", r.Code, 2)
}
