package integration_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
	"broker/integration/workqclient"
)

// contents maps the files of a folder to their bytes; the lock file is empty and may be created by readers.
func contents(t *testing.T, dir string) map[string][sha256.Size]byte {
	t.Helper()
	all := make(map[string][sha256.Size]byte)
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "LOCK" {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = sha256.Sum256(text)
		return err
	}))
	return all
}

// refusedStart starts a broker that must exit with code 1 and print all the words.
func refusedStart(t *testing.T, b *harness.Broker, words ...string) {
	t.Helper()
	before := 0
	if b.Process != nil { // the output of earlier runs does not count
		before = len(b.Output())
	}
	check(t, b.Spawn())
	code, err := b.Wait(harness.Patience)
	check(t, err)
	equal(t, "exit code", code, 1)
	said := b.Output()[before:]
	for _, w := range words {
		if !strings.Contains(said, w) {
			t.Errorf("%q is missing from: %s", w, said)
		}
	}
}

func TestLeasesThatRanOutWhileTheBrokerWasStoppedComeBack(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	wq := harness.DialWorkq(t, b)
	short, long := wqJob("paused", "short"), wqJob("paused", "long")
	short.TTR = time.Second
	for _, job := range []workqclient.Job{long, short} { // the lease of the short one may end at once
		check(t, wq.Add(job))
		_, err := wq.Lease(0, "paused")
		check(t, err)
	}
	check(t, b.Signal(syscall.SIGSTOP))
	time.Sleep(1200 * time.Millisecond)
	check(t, b.Signal(syscall.SIGCONT))
	l, err := wq.Lease(harness.Patience, "paused")
	check(t, err)
	equal(t, "job", l.ID, short.ID)
	check(t, wq.Complete(l.ID, nil)) // else it may run out once more
	_, err = wq.Lease(0, "paused")
	wantIs(t, err, workqclient.ErrTimeout)
}

func TestErrorNamesTheUnusableDataFolder(t *testing.T) {
	t.Parallel()
	for name, reason := range map[string]string{"file": "not a directory", "file/below": "not a directory"} {
		b := harness.Prepare(t, harness.Options{})
		dir := t.TempDir()
		check(t, os.WriteFile(filepath.Join(dir, "file"), []byte("mine"), 0o600))
		b.Data = filepath.Join(dir, name)
		refusedStart(t, b, b.Data, reason)
		text, err := os.ReadFile(filepath.Join(dir, "file"))
		check(t, err)
		equal(t, "file", string(text), "mine")
	}
}

func TestSecondBrokerFailsBecauseTheStoreIsInUse(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	wq, fkt := harness.DialWorkq(t, b), dialFaktory(t, b)
	check(t, wq.Add(wqJob("first", "before")))
	second := harness.Prepare(t, harness.Options{})
	second.Data = b.Data
	refusedStart(t, second, b.Data, "in use")
	// The first broker keeps serving its connections, and its store is intact.
	check(t, wq.Add(wqJob("first", "after")))
	check(t, fkt.Push(fktJob("first", "faktory")))
	b.Crash()
	b.Restart()
	equal(t, "jobs", drainInOrder(t, b, "first"), []string{"before", "after", `["faktory"]`})
}

func TestStoreOfANewerVersionIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	check(t, harness.DialWorkq(t, b).Add(wqJob("kept", "x")))
	b.Crash() // leaves a log to replay
	format := filepath.Join(b.Data, "FORMAT")
	was, err := os.ReadFile(format)
	check(t, err)
	check(t, os.WriteFile(format, []byte("broker store, format 999\n"), 0o600))
	before := contents(t, b.Data)
	refusedStart(t, b, b.Data, "format 999", "newer version")
	r := brokerCommand(t, "doctor", b.Data)
	equal(t, "exit code of doctor: "+r.Stderr, r.Code, 1)
	equal(t, "doctor says so", strings.Contains(r.Stderr, "newer version"), true)
	for path, sum := range contents(t, b.Data) {
		if before[path] != sum {
			t.Errorf("%s was changed or created", path)
		}
		delete(before, path)
	}
	equal(t, "files that are gone", len(before), 0)
	check(t, os.WriteFile(format, was, 0o600))
	b.Restart()
	equal(t, "jobs", drainInOrder(t, b, "kept"), []string{"x"})
}

// TestMissingStoreFileStopsTheStart removes each file of a store in turn: the start either names the file and the
// remedy, or recovers every job.
func TestMissingStoreFileStopsTheStart(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	const jobs = 2000
	submitMany(t, b, "kept", jobs/2)
	b.Crash()
	b.Restart() // what the log had is in a table now
	submitMany(t, b, "kept", jobs/2)
	b.Crash()
	files := contents(t, b.Data)
	refused := 0
	for path := range files {
		name := filepath.Base(path)
		text, err := os.ReadFile(path)
		check(t, err)
		if len(text) == 0 && !strings.HasPrefix(name, "marker.manifest") {
			continue
		}
		whole := copied(t, b.Data)
		check(t, os.Remove(filepath.Join(whole, name)))
		r := brokerCommand(t, "doctor", whole)
		other := harness.Prepare(t, harness.Options{})
		other.Data = whole
		if r.Code == 0 {
			check(t, other.Start())
			equal(t, "jobs without "+name, statusRow(t, other, "kept"), fmt.Sprintf("%d 0 0", jobs))
			other.Process.Kill()
			continue
		}
		refused++
		refusedStart(t, other, whole, "backup")
		if said := other.Output(); !strings.Contains(said, named(name)) {
			t.Errorf("%s is missing but not named: %s", name, said)
		}
	}
	if refused < 3 { // at least a table, the log and the manifest
		t.Errorf("only %d of %d files are required", refused, len(files))
	}
}

// named is how a message names a missing file.
func named(file string) string {
	switch {
	case strings.HasPrefix(file, "marker."): // MARKER.NUMBER.TEXT
		return strings.Join(strings.Split(file, ".")[:2], ".")
	case strings.HasSuffix(file, ".log"): // its number may be unknown
		return ".log is damaged or missing"
	}
	return file
}

// copied copies a store.
func copied(t *testing.T, data string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	check(t, os.CopyFS(to, os.DirFS(data)))
	return to
}

// TestDescriptorsThatRunOut lets clients use all descriptors for connections: the next client is refused in its
// protocol, and the store, which needs descriptors too, keeps working.
func TestDescriptorsThatRunOut(t *testing.T) {
	t.Parallel()
	const granted = 200
	b := prepareWith(t, withDescriptors(t, granted))
	check(t, b.BrokerServer.Start())
	var first *gearmanclient.Client
	open := 0
	for told := false; !told && open < granted; {
		c := harness.DialGearman(t, b)
		_ = c.Send(gearmanclient.EchoReq, "in") // it may be closed already
		p, err := c.Read(harness.Patience)
		check(t, err)
		switch {
		case p.Type == gearmanclient.Error:
			told = true
			continue
		case first == nil:
			first = c
		}
		open++
	}
	if open < granted/4 || open > granted*3/4 {
		t.Errorf("%d connections with %d descriptors", open, granted)
	}
	for address, refusal := range map[string]string{
		b.Gearman: "\x00RES\x00\x00\x00\x13", b.Workq: "too many connections", b.Faktory: "-ERR too many connections",
	} {
		c := dialRawConn(t, address)
		if address == b.Faktory {
			c.send("HELLO {\"v\":2}\r\n") // until then it has one of the places of those who have not logged in
		}
		told := c.cutOff()
		equal(t, fmt.Sprintf("one too many is told %q", told), strings.Contains(told, refusal), true)
	}
	for i := range 50 {
		_, err := first.Submit(gearmanclient.SubmitJobBg, "stored", "", fmt.Sprint(i))
		check(t, err)
	}
	dir := filepath.Join(t.TempDir(), "copy")
	status, answer := post(t, b, "/api/v1/backup", fmt.Sprintf(`{"dir":%q}`, dir))
	equal(t, "a copy, which opens files: "+answer, status, 200)
	b.Crash()
	b.Restart()
	equal(t, "jobs", len(drainInOrder(t, b, "stored")), 50)
}

// TestOutputCausedByOthersIsLimited: a Gearman worker is also the client of a job whose worker sends it data endlessly.
// It does not read, is cut off at the limit, and its own job goes to the next worker.
func TestOutputCausedByOthersIsLimited(t *testing.T) {
	t.Parallel()
	b := harness.Start(t, harness.Options{Config: "[limits]\noutput_bytes = \"1 MiB\"\n"})
	deaf, other := harness.DialGearman(t, b), harness.DialGearman(t, b)
	_, err := other.Submit(gearmanclient.SubmitJobBg, "held", "", "its job")
	check(t, err)
	check(t, deaf.Send(gearmanclient.CanDo, "held"))
	_, _, _, _, err = deaf.Grab(harness.Patience)
	check(t, err)
	check(t, other.Send(gearmanclient.CanDo, "poured"))
	_, err = deaf.Submit(gearmanclient.SubmitJob, "poured", "", "x")
	check(t, err)
	handle, _, _, _, err := other.Grab(harness.Patience)
	check(t, err)
	next := harness.DialGearman(t, b)
	check(t, next.Send(gearmanclient.CanDo, "held"))
	awaitStatus(t, b, "held", "1 1 2") // the client is on another connection
	chunk := strings.Repeat("x", 256<<10)
	harness.Eventually(t, func() string {
		check(t, other.Send(gearmanclient.WorkData, handle, chunk))
		check(t, next.Send(gearmanclient.GrabJob))
		p, err := next.Read(harness.Patience)
		check(t, err)
		if p.Type != gearmanclient.JobAssign {
			return "the job it held is not there"
		}
		return ""
	})
	for name, limit := range map[string]string{"why": "output_limit", "whom": "gearman"} {
		harness.Eventually(t, func() string {
			if !strings.Contains(b.Output(), limit) {
				return "the log does not tell " + name
			}
			return ""
		})
	}
	check(t, other.Send(gearmanclient.EchoReq, "still here")) // the sender of the data is not affected
	_, err = other.Expect(gearmanclient.EchoRes, harness.Patience)
	check(t, err)
}

// prepareWith creates a broker that a program of the test starts.
func prepareWith(t *testing.T, program string) *harness.Broker {
	t.Helper()
	b := harness.Prepare(t, harness.Options{})
	s, err := server.NewBroker(t.TempDir(), server.BrokerOptions{Binary: program})
	check(t, err)
	b.BrokerServer = s
	return b
}
