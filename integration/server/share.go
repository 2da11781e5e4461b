package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// sharePeriod is how often a share is granted anew. It is short, so that a node of a cluster that has used its share up
// is not taken for dead.
const sharePeriod = 10 * time.Millisecond

// Share is a control group of processes that get a limited part of the processors.
type Share struct{ dir string }

// NewShare makes a control group in which all processes together use at most a number of processors, such as 0.25. It
// needs root, and the cpu controller of control groups of version 1 or 2.
func NewShare(name string, processors float64) (*Share, error) {
	return newShare("/sys/fs/cgroup", name, processors)
}

// newShare makes it below the folder where control groups are mounted.
func newShare(mount, name string, processors float64) (*Share, error) {
	period := sharePeriod.Microseconds()
	quota := int64(processors * float64(period))
	s := &Share{filepath.Join(mount, "cpu", name)}
	limits := [][2]string{{"cpu.cfs_period_us", fmt.Sprint(period)}, {"cpu.cfs_quota_us", fmt.Sprint(quota)}}
	if _, err := os.Stat(filepath.Join(mount, "cpu")); err != nil { // version 2
		s.dir, limits = filepath.Join(mount, name), [][2]string{{"cpu.max", fmt.Sprint(quota, " ", period)}}
		if err := setControl(filepath.Join(mount, "cgroup.subtree_control"), "+cpu"); err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("a share of the processors needs root and control groups: %w", err)
	}
	for _, l := range limits {
		if err := setControl(filepath.Join(s.dir, l[0]), l[1]); err != nil {
			s.Remove()
			return nil, err
		}
	}
	return s, nil
}

func setControl(file, value string) error {
	if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
		return fmt.Errorf("a share of the processors needs root and control groups: %w", err)
	}
	return nil
}

// Add moves a process into the group, with its threads.
func (s *Share) Add(pid int) error {
	return setControl(filepath.Join(s.dir, "cgroup.procs"), strconv.Itoa(pid))
}

// Remove removes the group, whose processes must have ended.
func (s *Share) Remove() {
	const atMost = 100 // ms; the kernel takes a moment to forget the processes
	for range atMost {
		if os.Remove(s.dir) == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
