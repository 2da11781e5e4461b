package integration_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

func TestRelaxedDurabilityLosesNothingOlderThanItsInterval(t *testing.T) {
	t.Parallel()
	b := harness.Start(t, harness.Options{Durability: "relaxed"})
	c := harness.DialGearman(t, b)
	for i := range 100 {
		_, err := c.Submit(gearmanclient.SubmitJobBg, "relaxed", "", fmt.Sprintf("relaxed-%02d", i))
		check(t, err)
	}
	harness.Eventually(t, func() string { // after one interval
		if !onDisk(t, b.Data, "relaxed-99") {
			return "the last job is not on disk"
		}
		return ""
	})
	b.Crash()
	b.Restart()
	equal(t, "jobs", len(drainInOrder(t, b, "relaxed")), 100)
}

// onDisk tells whether a file of a store contains a text.
func onDisk(t *testing.T, data, text string) (found bool) {
	t.Helper()
	check(t, filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		found = found || strings.Contains(string(content), text)
		if errors.Is(err, fs.ErrNotExist) { // the broker has removed it
			return nil
		}
		return err
	}))
	return found
}

func TestDurabilityNoneWritesNothing(t *testing.T) {
	t.Parallel()
	b := harness.Start(t, harness.Options{Durability: "none"})
	c := harness.DialGearman(t, b)
	for i := range 100 {
		_, err := c.Submit(gearmanclient.SubmitJobBg, "forgotten", "", fmt.Sprint(i))
		check(t, err)
	}
	var bytes int64
	// The folder may not exist.
	_ = filepath.WalkDir(b.Data, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	equal(t, "bytes on disk", bytes, int64(0))
	b.Crash()
	b.Restart()
	equal(t, "jobs after a restart", len(drainInOrder(t, b, "forgotten")), 0)
}

func TestATornTailIsCutAndDamageElsewhereStopsTheStart(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c := harness.DialGearman(t, b)
	for i := range 500 {
		_, err := c.Submit(gearmanclient.SubmitJobBg, "kept", "", fmt.Sprint(i, strings.Repeat("x", 1000)))
		check(t, err)
	}
	b.Crash()

	// A power failure may leave part of a record that was never acknowledged behind the last sync.
	log := newestLog(t, b.Data)
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	_, err = f.WriteString("\x17\x2a\x05half a record")
	check(t, err)
	check(t, f.Close())
	b.Restart()
	equal(t, "jobs", statusRow(t, b, "kept"), "500 0 0")
	_, err = harness.DialGearman(t, b).Submit(gearmanclient.SubmitJobBg, "kept", "", "one more")
	check(t, err)
	code, _ := b.Terminate()
	equal(t, "exit code", code, 0)

	// Damage in synced data: the broker never starts silently with missing jobs.
	damaged := damage(t, b.Data)
	check(t, b.Spawn())
	code, err = b.Wait(harness.Patience)
	if err != nil {
		t.Fatalf("the broker started on a damaged store (%q): %v", damaged, err)
	}
	equal(t, "exit code", code, 1)
	named := false
	for _, file := range damaged {
		named = named || strings.Contains(b.Output(), filepath.Base(file))
	}
	if !named {
		t.Errorf("the message names none of %q", damaged)
	}
	equal(t, "it says what to do", strings.Contains(b.Output(), "restore the folder from a backup"), true)
}

// newestLog is the write-ahead log with the highest number.
func newestLog(t *testing.T, data string) string {
	t.Helper()
	var newest string
	check(t, filepath.WalkDir(data, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".log") && filepath.Base(path) > filepath.Base(newest) {
			newest = path
		}
		return err
	}))
	if newest == "" {
		t.Fatal("the store has no log")
	}
	return newest
}

// damage overwrites the middle of every file that contains jobs and returns their paths.
func damage(t *testing.T, data string) []string {
	t.Helper()
	var files []string
	check(t, filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !(strings.HasSuffix(path, ".sst") || strings.HasSuffix(path, ".log")) {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() < 10_000 {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		files = append(files, path)
		for at := info.Size() / 4; at < info.Size()*3/4; at += 512 {
			if _, err := f.WriteAt([]byte("damage!!"), at); err != nil {
				return err
			}
		}
		return f.Close()
	}))
	if len(files) == 0 {
		t.Fatal("the store has no file to damage")
	}
	return files
}
