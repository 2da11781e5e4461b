//go:build nightly

package torture_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"broker/integration/harness"
)

// commandResult is the exit code and the output of a command.
type commandResult struct {
	code int
	said string
}

func command(t testing.TB, args ...string) commandResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, harness.Binary(t), args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		return commandResult{code: exit.ExitCode(), said: string(out)}
	}
	return commandResult{said: string(out)}
}

// awaitCopy waits until a copy is being written.
func awaitCopy(t testing.TB, dir string) {
	t.Helper()
	for end := time.Now().Add(harness.Patience); ; time.Sleep(50 * time.Microsecond) {
		if tables, _ := filepath.Glob(filepath.Join(dir+".unfinished", "store", "*")); len(tables) > 1 {
			return
		}
		if _, err := os.Stat(dir); err == nil || time.Now().After(end) {
			t.Fatalf("no copy in progress at %s, %v", dir, err)
		}
	}
}

// TestKillDuringABackup kills the broker, and the command on a stopped store, during a backup to another file system,
// where tables cannot be linked.
func TestKillDuringABackup(t *testing.T) {
	harness.BrokerOnly(t) // not parallel: the copy must still be in progress at the kill
	const jobs = 600
	b := harness.Start(t, harness.Options{})
	body := make([]byte, 256<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(body) // incompressible; it never fails
	submitMany(t, b, "copied", jobs, string(body))
	disk := harness.NewSmallDisk(t, 600*mib)
	for round, kill := range []func(dir string){
		func(dir string) {
			go func() { // ends with the broker
				resp, err := http.Post("http://"+b.HTTP+"/api/v1/backup", "application/json",
					strings.NewReader(fmt.Sprintf(`{"dir":%q}`, dir)))
				if err == nil {
					_ = resp.Body.Close()
				}
			}()
			awaitCopy(t, dir)
			b.Crash()
		},
		func(dir string) {
			cmd := exec.CommandContext(t.Context(), harness.Binary(t), "backup", dir, "--data", b.Data, "--http",
				b.HTTP)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			check(t, cmd.Start())
			awaitCopy(t, dir)
			check(t, cmd.Process.Signal(syscall.SIGKILL))
			if err := cmd.Wait(); err == nil {
				t.Fatalf("the copy ended before the kill: %s", out.String())
			}
		},
	} {
		dir := filepath.Join(disk.Dir, fmt.Sprint("copy", round))
		kill(dir)
		if _, err := os.Stat(dir); err == nil {
			t.Fatalf("round %d: an incomplete copy has the final name", round)
		}
		if r := command(t, "doctor", b.Data); r.code != 0 || !strings.Contains(r.said, fmt.Sprintf("%d ready", jobs)) {
			t.Errorf("round %d: the source: %+v", round, r)
		}
		if r := command(t, "doctor", dir); r.code != 1 || !strings.Contains(r.said, "no store in this folder") {
			t.Errorf("round %d: the destination: %+v", round, r)
		}
		for _, half := range []string{dir + ".unfinished", filepath.Join(dir+".unfinished", "store")} {
			serve := []string{
				"serve", "--data", half,
				"--workq", "unix:" + filepath.Join(t.TempDir(), "w"), "--gearman", "off", "--faktory", "off", "--http",
				"off",
			}
			for _, args := range [][]string{{"doctor", half}, serve} {
				if r := command(t, args...); r.code != 1 ||
					!strings.Contains(r.said, "a copy of a store that was interrupted") {
					t.Errorf("round %d: %v: %+v", round, args, r)
				}
			}
		}
		if r := command(t, "backup", dir, "--data", b.Data, "--http", b.HTTP); r.code != 7 ||
			!strings.Contains(r.said, "interrupted; remove it") {
			t.Errorf("round %d: second backup to the same destination: %+v", round, r)
		}
		check(t, os.RemoveAll(dir+".unfinished"))
		if r := command(t, "backup", dir, "--data", b.Data, "--http", b.HTTP); r.code != 0 {
			t.Errorf("round %d: backup after removing the leftovers: %+v", round, r)
		}
		if r := command(t, "doctor", dir); r.code != 0 || !strings.Contains(r.said, fmt.Sprintf("%d ready", jobs)) {
			t.Errorf("round %d: that backup: %+v", round, r)
		}
		if _, err := os.Stat(dir + ".unfinished"); err == nil {
			t.Errorf("round %d: a complete copy leaves %s.unfinished", round, dir)
		}
		check(t, os.RemoveAll(dir)) // the disk has room for one
	}
}
