package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBackupLinksTablesAndDoctorChangesNothing: a backup on the same file system hard-links the immutable tables and
// copies everything else; doctor changes no byte of a store.
func TestBackupLinksTablesAndDoctorChangesNothing(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	submitMany(t, b, "kept", 1000)
	b.Crash()
	b.Restart() // moves the content of the log to a table
	submitMany(t, b, "kept", 1000)
	copied := filepath.Join(t.TempDir(), "copy")
	status, answer := post(t, b, "/api/v1/backup", fmt.Sprintf(`{"dir":%q}`, copied))
	equal(t, "backup: "+answer, status, 200)
	submitMany(t, b, "kept", 1000) // not in the backup
	b.Crash()
	linked := 0
	check(t, filepath.WalkDir(copied, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		same := sameFile(t, path, filepath.Join(b.Data, d.Name()))
		if same {
			linked++
		}
		if same && !strings.HasSuffix(path, ".sst") {
			t.Errorf("%s is linked although it may change", path)
		}
		return nil
	}))
	if linked == 0 {
		t.Error("no table is linked")
	}
	for dir, jobs := range map[string]string{b.Data: "3000 jobs", copied: "2000 jobs"} {
		before := contents(t, dir)
		r := brokerCommand(t, "doctor", dir)
		equal(t, "exit code of doctor: "+r.Stderr, r.Code, 0)
		equal(t, "what doctor found: "+r.Stdout, strings.Contains(r.Stdout, jobs), true)
		after := contents(t, dir)
		equal(t, "files", len(after), len(before))
		for path, sum := range before {
			if after[path] != sum {
				t.Errorf("doctor changed %s", path)
			}
		}
	}
	equal(t, "exit code of wrong use", brokerCommand(t, "doctor", copied, b.Data).Code, 2)
	equal(t, "exit code of an unknown flag", brokerCommand(t, "doctor", "--no-such-flag").Code, 2)
}

// sameFile reports whether both paths name the same file.
func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.Stat(a)
	check(t, err)
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
