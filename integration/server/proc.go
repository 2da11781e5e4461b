package server

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of utime and stime in /proc: USER_HZ, which is always 100 on Linux.
const ticksPerSecond = 100

// Split splits an address of this package into host and port.
func Split(addr string) (host, port string) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		panic(fmt.Sprintf("address %q: %v", addr, err))
	}
	return host, port
}

// CPUTime is the CPU time that processes have used so far.
func CPUTime(pids ...int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		fields, err := statFields(pid)
		if err != nil {
			return 0, err
		}
		for _, f := range fields[11:13] { // utime and stime, fields 14 and 15 of proc(5)
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("stat of process %d: %w", pid, err)
			}
			sum += time.Duration(n) * time.Second / ticksPerSecond
		}
	}
	return sum, nil
}

// ResidentBytes is the resident memory of processes.
func ResidentBytes(pids ...int) (int64, error) {
	var sum int64
	for _, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, err
		}
		_, rest, found := strings.Cut(string(status), "VmRSS:")
		if !found {
			return 0, fmt.Errorf("process %d: no VmRSS", pid)
		}
		kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("process %d: VmRSS: %w", pid, err)
		}
		sum += kb << 10
	}
	return sum, nil
}

// Children are the child processes of pid.
func Children(pid int) []int {
	var found []int
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		child, err := strconv.Atoi(filepath.Base(e))
		if err != nil {
			continue
		}
		fields, err := statFields(child)
		if err != nil {
			continue // it ended meanwhile
		}
		if fields[1] == strconv.Itoa(pid) {
			found = append(found, child)
		}
	}
	return found
}

// statFields are the fields of /proc/PID/stat after the name, which may contain spaces and brackets.
func statFields(pid int) ([]string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	end := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 13 {
		return nil, fmt.Errorf("stat of process %d has %d fields", pid, len(fields))
	}
	return fields, nil
}
