package integration_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// post sends a POST request to the HTTP API.
func post(
	t testing.TB, b *harness.Broker, path, body string, change ...func(*http.Request),
) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+b.HTTP+path, strings.NewReader(body))
	check(t, err)
	req.Close = true
	if b.Password != "" {
		req.SetBasicAuth("", b.Password)
	}
	for _, c := range change {
		c(req)
	}
	resp, err := http.DefaultClient.Do(req)
	check(t, err)
	defer func() { _ = resp.Body.Close() }() // it was read
	text, err := io.ReadAll(resp.Body)
	check(t, err)
	return resp.StatusCode, string(text)
}

// startOn starts a broker on an existing data folder.
func startOn(t *testing.T, data string) *harness.Broker {
	t.Helper()
	b := harness.Prepare(t, harness.Options{})
	b.Data = data
	b.Restart()
	return b
}

func TestBackupUnderLoadHasEveryAcknowledgedJob(t *testing.T) {
	harness.BrokerOnly(t)
	t.Parallel()
	b := start(t)
	var mu sync.Mutex // guards acked
	acked := make(map[string]bool)
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for n := range 3 {
		c := harness.DialGearman(t, b)
		clients.Go(func() { // ends with stop
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				body := fmt.Sprintf("%d-%d", n, i)
				if _, err := c.Submit(gearmanclient.SubmitJobBg, "saved", "", body); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked[body] = true
				mu.Unlock()
			}
		})
	}
	var before []string
	harness.Eventually(t, func() string { // the backup must be made under load
		mu.Lock()
		defer mu.Unlock()
		before = slices.Collect(maps.Keys(acked))
		if len(before) < 100 {
			return fmt.Sprintf("only %d jobs before the backup", len(before))
		}
		return ""
	})
	dir := filepath.Join(t.TempDir(), "copy")
	status, answer := post(t, b, "/api/v1/backup", fmt.Sprintf(`{"dir":%q}`, dir))
	equal(t, "status: "+answer, status, http.StatusOK)
	close(stop)
	clients.Wait()

	status, answer = post(t, b, "/api/v1/backup", fmt.Sprintf(`{"dir":%q}`, dir))
	equal(t, "status of a second copy to the same folder: "+answer, status, http.StatusConflict)
	info, err := os.Stat(dir)
	check(t, err)
	equal(t, "rights of the copy", info.Mode().Perm(), 0o700)

	found := make(map[string]bool)
	for _, body := range drainInOrder(t, startOn(t, dir), "saved") {
		found[body] = true
	}
	for _, body := range before {
		if !found[body] {
			t.Errorf("%s was acknowledged before the backup but is missing from it", body)
		}
	}
	t.Logf("%d jobs acknowledged before the backup, %d in it, %d in all", len(before), len(found), len(acked))
	equal(t, "jobs where they were", len(drainInOrder(t, b, "saved")), len(acked))
}

func TestBackupAndDoctorCommands(t *testing.T) {
	t.Parallel()
	b := harness.Start(t, harness.Options{Password: "s3cret"})
	c := harness.DialGearman(t, b)
	for i := range 7 {
		_, err := c.Submit(gearmanclient.SubmitJobBg, "examined", "", fmt.Sprint(i))
		check(t, err)
	}
	first, second := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	flags := []string{"--data", b.Data, "--http", b.HTTP}
	r := brokerCommand(t, append([]string{"backup", first}, flags...)...)
	equal(t, "exit code without the password", r.Code, 6)
	if !strings.Contains(r.Stderr, "password") {
		t.Errorf("the message does not mention the password: %s", r.Stderr)
	}
	r = brokerCommand(t, append([]string{"backup", first, "--password", "s3cret"}, flags...)...)
	equal(t, "exit code of a copy of a running broker: "+r.Stderr, r.Code, 0)
	r = brokerCommand(t, "doctor", b.Data)
	equal(t, "exit code of doctor beside a running broker", r.Code, 1)
	if !strings.Contains(r.Stderr, "in use") {
		t.Errorf("the message does not say that the store is in use: %s", r.Stderr)
	}
	unpacked := checkTarBackups(t, b, flags)
	b.Terminate()
	stopped := filepath.Join(t.TempDir(), "stopped.tar")
	r = brokerCommand(t, append([]string{"backup", stopped}, flags...)...)
	equal(t, "exit code of a tar file of a stopped store: "+r.Stderr, r.Code, 0)
	r = brokerCommand(t, append([]string{"backup", second}, flags...)...)
	equal(t, "exit code of a copy of a stopped store: "+r.Stderr, r.Code, 0)
	r = brokerCommand(t, append([]string{"backup", second}, flags...)...)
	equal(t, "exit code of a second copy to the same folder", r.Code, 7)
	for _, dir := range []string{b.Data, first, second, unpacked, unpackTar(t, stopped)} {
		r = brokerCommand(t, "doctor", dir)
		equal(t, "exit code of doctor: "+r.Stderr, r.Code, 0)
		var report struct {
			Sound bool
			Jobs  map[string]int
		}
		if r := brokerCommand(t, "doctor", "-o", "json", dir); json.Unmarshal([]byte(r.Stdout), &report) != nil ||
			!report.Sound || len(report.Jobs) == 0 {
			t.Errorf("doctor -o json: exit code %d, %s", r.Code, r.Stdout)
		}
		for _, words := range []string{"7 jobs in 1 queues: 7 ready", "examined", "no damage"} {
			if !strings.Contains(r.Stdout, words) {
				t.Errorf("%q is missing from the output of doctor: %s", words, r.Stdout)
			}
		}
	}
	r = brokerCommand(t, "doctor", "-o", "json", filepath.Join(t.TempDir(), "none"))
	if r.Code != 1 || !strings.HasPrefix(r.Stderr, `{"error":`) {
		t.Errorf("doctor -o json of no store: exit code %d, %s", r.Code, r.Stderr)
	}
	r = brokerCommand(t, "doctor", t.TempDir())
	equal(t, "exit code where there is no store", r.Code, 1)
	damageTable(t, second)
	r = brokerCommand(t, "doctor", second)
	equal(t, "exit code of a damaged store", r.Code, 3)
	if !strings.Contains(r.Stderr, "DAMAGED") || !strings.Contains(r.Stderr, "restore the folder from a backup") {
		t.Errorf("the message names neither the damage nor the remedy: %s", r.Stderr)
	}
	if strings.Contains(r.Stderr, "detail carrier") {
		t.Errorf("the message is for programmers of the store: %s", r.Stderr)
	}
	_, printed, _ := strings.Cut(r.Stderr, "broker doctor --salvage ")
	words := strings.Fields(printed) // the command as it was printed
	if len(words) < 2 {
		t.Fatalf("the message names no command: %s", r.Stderr)
	}
	salvaged := words[0]
	r = brokerCommand(t, "doctor", "--salvage", salvaged, words[1])
	equal(t, "exit code of a copy of what can be read", r.Code, 3)
	if !strings.Contains(r.Stdout, "the new store can be used") || strings.Contains(r.Stdout, "no damage") ||
		strings.Index(r.Stdout, "LOST: ") < strings.Index(r.Stdout, "the new store can be used") {
		t.Errorf("the copy of what can be read: %s%s", r.Stdout, r.Stderr)
	}
	equal(t, "exit code of doctor for that copy", brokerCommand(t, "doctor", salvaged).Code, 0)
	r = brokerCommand(t, "doctor", "--salvage", salvaged, second)
	if r.Code != 1 || !strings.Contains(r.Stderr, "exists") {
		t.Errorf("a copy to a folder that exists: exit code %d, %s", r.Code, r.Stderr)
	}
}

// checkTarBackups makes tar files of a running broker, and returns the folder into which one is unpacked.
func checkTarBackups(t *testing.T, b *harness.Broker, flags []string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup.tar")
	r := brokerCommand(t, append([]string{"backup", file, "--password", "s3cret"}, flags...)...)
	equal(t, "exit code of a tar file: "+r.Stderr, r.Code, 0)
	r = brokerCommand(t, append([]string{"backup", file, "--password", "s3cret"}, flags...)...)
	equal(t, "exit code of a second tar file", r.Code, 7)
	config := filepath.Join(t.TempDir(), "broker.toml")
	check(t, os.WriteFile(config,
		[]byte(fmt.Sprintf("data = %q\n[http]\nlisten = %q\npassword = \"s3cret\"\n", b.Data, b.HTTP)), 0o600))
	r = brokerCommand(t, "backup", "-", "--config", config)
	equal(t, "exit code of a tar file to the standard output: "+r.Stderr, r.Code, 0)
	written := filepath.Join(t.TempDir(), "stdout.tar")
	check(t, os.WriteFile(written, []byte(r.Stdout), 0o600))
	unpackTar(t, file)
	left, err := filepath.Glob(filepath.Join(filepath.Dir(b.Data), ".*backup-stream*"))
	check(t, err)
	equal(t, "what is left beside the store", len(left), 0)
	return unpackTar(t, written)
}

func unpackTar(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	harness.Run(t, harness.Command{Argv: []string{"tar", "-xf", file, "-C", dir}})
	return dir
}

// damageTable flips a bit in the middle of the largest table of a store.
func damageTable(t *testing.T, dir string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	check(t, err)
	var largest string
	size := int64(-1)
	for _, path := range tables {
		info, err := os.Stat(path)
		check(t, err)
		if info.Size() > size {
			largest, size = path, info.Size()
		}
	}
	if largest == "" {
		t.Fatal("the store has no table to damage")
	}
	text, err := os.ReadFile(largest)
	check(t, err)
	text[20] ^= 0x10
	check(t, os.WriteFile(largest, text, 0o600))
}
