package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFirstLineSaysThatTheStoreIsNew protects operators who name a wrong folder: their jobs seem to be lost.
func TestFirstLineSaysThatTheStoreIsNew(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	firstLine := func() string {
		r := start(t, nil, "broker", "serve", "--data", filepath.Join(parent, "new"), "--workq", "127.0.0.1:0",
			"--gearman", "off", "--faktory", "off", "--http", "off")
		eventually(t, "ready", func() bool { return strings.Contains(r.output.String(), `"message":"ready"`) })
		r.signal(syscall.SIGTERM)
		r.wantExit(0)
		line, _, _ := strings.Cut(r.output.String(), "\n")
		return line
	}
	created := `"data":"` + filepath.Join(parent, "new") + `"`
	if line := firstLine(); !strings.Contains(line, "made an empty store") || !strings.Contains(line, created) {
		t.Errorf("a new folder: the first line is %s", line)
	}
	if line := firstLine(); !strings.Contains(line, "store opened") {
		t.Errorf("the store of before: the first line is %s", line)
	}
}
