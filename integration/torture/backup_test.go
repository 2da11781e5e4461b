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

// ran is how a command of the broker ended.
type ran struct {
	code int
	said string
}

func command(t testing.TB, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, harness.Binary(t), args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		return ran{code: exit.ExitCode(), said: string(out)}
	}
	return ran{said: string(out)}
}

// begun waits until a copy has begun to be written.
func begun(t testing.TB, dir string) {
	t.Helper()
	for end := time.Now().Add(harness.Patience); ; time.Sleep(50 * time.Microsecond) {
		if tables, _ := filepath.Glob(filepath.Join(dir+".unfinished", "store", "*")); len(tables) > 1 {
			return
		}
		if _, err := os.Stat(dir); err == nil || time.Now().After(end) {
			t.Fatalf("no copy under way at %s, %v", dir, err)
		}
	}
}

// TestKilledWhileItCopies kills the broker, and the command on a stopped store, in the middle of a copy onto another
// file system, where tables cannot be linked and take their time.
func TestKilledWhileItCopies(t *testing.T) {
	harness.OursOnly(t) // not parallel: the copy must still be under way when the kill comes
	const jobs = 600
	b := harness.Start(t, harness.Options{})
	body := make([]byte, 256<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(body) // what cannot be pressed takes its time; it never fails
	stock(t, b, "copied", jobs, string(body))
	disk := harness.NewSmallDisk(t, 600*mib)
	for round, kill := range []func(dir string){
		func(dir string) {
			go func() { // ends with the broker
				resp, err := http.Post("http://"+b.HTTP+"/api/backup", "application/json", strings.NewReader(fmt.Sprintf(`{"dir":%q}`, dir)))
				if err == nil {
					_ = resp.Body.Close()
				}
			}()
			begun(t, dir)
			b.Crash()
		},
		func(dir string) {
			cmd := exec.CommandContext(t.Context(), harness.Binary(t), "backup", dir, "--data", b.Data, "--http", b.HTTP)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			check(t, cmd.Start())
			begun(t, dir)
			check(t, cmd.Process.Signal(syscall.SIGKILL))
			if err := cmd.Wait(); err == nil {
				t.Fatalf("the copy was over before the kill: %s", out.String())
			}
		},
	} {
		dir := filepath.Join(disk.Dir, fmt.Sprint("copy", round))
		kill(dir)
		if _, err := os.Stat(dir); err == nil {
			t.Fatalf("round %d: half a copy has the name of a whole one", round)
		}
		if r := command(t, "doctor", b.Data); r.code != 0 || !strings.Contains(r.said, fmt.Sprintf("%d ready", jobs)) {
			t.Errorf("round %d: the source: %+v", round, r)
		}
		if r := command(t, "doctor", dir); r.code != 1 || !strings.Contains(r.said, "no store in this folder") {
			t.Errorf("round %d: where the copy was to be: %+v", round, r)
		}
		for _, half := range []string{dir + ".unfinished", filepath.Join(dir+".unfinished", "store")} {
			serve := []string{
				"serve", "--data", half,
				"--workq", "unix:" + filepath.Join(t.TempDir(), "w"), "--gearman", "off", "--faktory", "off", "--http", "off",
			}
			for _, args := range [][]string{{"doctor", half}, serve} {
				if r := command(t, args...); r.code != 1 || !strings.Contains(r.said, "a copy of a store that was interrupted") {
					t.Errorf("round %d: %v: %+v", round, args, r)
				}
			}
		}
		if r := command(t, "backup", dir, "--data", b.Data, "--http", b.HTTP); r.code != 1 || !strings.Contains(r.said, "interrupted; remove it") {
			t.Errorf("round %d: again to the same name: %+v", round, r)
		}
		check(t, os.RemoveAll(dir+".unfinished"))
		if r := command(t, "backup", dir, "--data", b.Data, "--http", b.HTTP); r.code != 0 {
			t.Errorf("round %d: once that is removed: %+v", round, r)
		}
		if r := command(t, "doctor", dir); r.code != 0 || !strings.Contains(r.said, fmt.Sprintf("%d ready", jobs)) {
			t.Errorf("round %d: the copy that was made then: %+v", round, r)
		}
		if _, err := os.Stat(dir + ".unfinished"); err == nil {
			t.Errorf("round %d: a copy that is done leaves %s.unfinished", round, dir)
		}
		check(t, os.RemoveAll(dir)) // the disk has room for one
	}
}
