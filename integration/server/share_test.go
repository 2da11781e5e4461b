package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestShareSetsTheLimitsOfBothVersionsOfControlGroups(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]map[string]string{
		"1": {"cpu/n1/cpu.cfs_period_us": "10000", "cpu/n1/cpu.cfs_quota_us": "2500", "cpu/n1/cgroup.procs": "77"},
		"2": {"cgroup.subtree_control": "+cpu", "n1/cpu.max": "2500 10000", "n1/cgroup.procs": "77"},
	} {
		mount := t.TempDir()
		if version == "1" {
			if err := os.Mkdir(filepath.Join(mount, "cpu"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s, err := newShare(mount, "n1", 0.25)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Add(77); err != nil {
			t.Fatal(err)
		}
		for file, value := range want {
			if got, err := os.ReadFile(filepath.Join(mount, file)); err != nil || string(got) != value {
				t.Errorf("version %s: %s is %q (%v), want %q", version, file, got, err, value)
			}
		}
	}
}

func TestShareWithoutControlGroupsSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	_, err := newShare(filepath.Join(t.TempDir(), "missing"), "n1", 0.25)
	if err == nil || !strings.Contains(err.Error(), "needs root and control groups") {
		t.Errorf("%v", err)
	}
}
