// Package server starts servers as child processes on free loopback ports: the broker, and the servers it is compared
// with. It does not import testing, because the benchmark program uses it too.
package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// errStillRunning means that a process has not ended in time.
var errStillRunning = errors.New("process is still running")

// WaitDelay is how long the output of a process that has ended may stay open. A grandchild may hold it; on a busy
// machine it may take a while to read it.
const WaitDelay = 20 * time.Second

// Process is a child process whose output goes to a file.
type Process struct {
	Name string

	cmd     *exec.Cmd
	logPath string
	done    chan struct{} // closed when the process has been reaped
}

// Spec describes a process.
type Spec struct {
	Name string
	Argv []string
	Env  []string // added to the environment of this process
	Dir  string   // working folder; empty: that of this process
	Logs string   // folder for the output file

	// Stdout, if set, receives the standard output instead of the output file.
	Stdout io.Writer
	Stdin  io.Reader
}

// Launch starts a process. Its output is appended to a file, so that one file contains the output of all restarts.
func Launch(s Spec) (*Process, error) {
	p := &Process{Name: s.Name, logPath: filepath.Join(s.Logs, s.Name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child holds its own descriptor
	cmd := exec.Command(s.Argv[0], s.Argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	if s.Stdout != nil {
		cmd.Stdout = s.Stdout
	}
	cmd.Stdin = s.Stdin
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.Dir = s.Dir
	cmd.WaitDelay = WaitDelay
	// If the test binary is killed, its servers end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	p.cmd = cmd
	go func() { // ends with the process; Wait and Kill wait for it
		_ = cmd.Wait() // the exit code is read from ProcessState
		close(p.done)
	}()
	return p, nil
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed once the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exited reports whether the process has ended.
func (p *Process) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal. It is not an error if the process has ended.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.Name, err)
	}
	return nil
}

// Wait waits until the process ends and returns the exit code, -1 if a signal ended it.
func (p *Process) Wait(atMost time.Duration) (int, error) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(atMost):
		return 0, fmt.Errorf("%s after %v: %w", p.Name, atMost, errStillRunning)
	}
}

// Kill sends SIGKILL and waits until the process has ended and its sockets are closed.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

// Stop sends SIGTERM, and SIGKILL if the process does not end in time.
func (p *Process) Stop(atMost time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if _, err := p.Wait(atMost); err != nil {
		p.Kill()
	}
}

// Output is the output of the process so far.
func (p *Process) Output() string {
	b, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Tail is the end of the output, for error messages.
func (p *Process) Tail() string {
	const keep = 4 << 10
	out := p.Output()
	if len(out) > keep {
		out = "[…]" + out[len(out)-keep:]
	}
	return strings.TrimSpace(out)
}

// Lines collects the lines that a process prints. It is an io.Writer.
type Lines struct {
	mu      sync.Mutex // guards the rest
	lines   []string
	partial []byte
	changed chan struct{} // closed and replaced at each new line
}

// Write implements io.Writer.
func (l *Lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, b...)
	grown := false
	for {
		line, rest, found := strings.Cut(string(l.partial), "\n")
		if !found {
			break
		}
		l.lines = append(l.lines, line)
		l.partial = append(l.partial[:0], rest...)
		grown = true
	}
	if grown && l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return len(b), nil
}

// Snapshot returns the lines so far, and a channel that is closed when there are more.
func (l *Lines) Snapshot() ([]string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return append([]string(nil), l.lines...), l.changed
}
