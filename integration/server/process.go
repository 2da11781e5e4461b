// Package server starts servers as child processes on free loopback ports: the broker under test and the peers it is
// measured or compared with. It knows nothing of the testing package, so that tests and the load program share it.
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

// ErrStillRunning is what Wait answers when the process has not ended in time.
var ErrStillRunning = errors.New("process is still running")

// Process is a child process whose output is kept in a file.
type Process struct {
	Name string

	cmd     *exec.Cmd
	logPath string
	done    chan struct{} // closed when the process has been reaped
}

// Spec says what to run.
type Spec struct {
	Name string
	Argv []string
	Env  []string // added to the environment of this process
	Dir  string   // working folder; empty: that of this process
	Logs string   // folder for the output file

	// Stdout, where set, gets the standard output in place of the output file.
	Stdout io.Writer
	Stdin  io.Reader
}

// Launch starts a process. Its output goes to a file, appended to when a process of that name ran there before, so that
// the story of a server over its restarts can be read in one place.
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
	// A child of the child may hold the output open after its parent has gone.
	cmd.WaitDelay = time.Second
	// A test binary that is killed takes its servers along: nothing is left on the machine.
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

// Exited says whether the process has ended.
func (p *Process) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal; one to a process that is gone is no error.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.Name, err)
	}
	return nil
}

// Wait waits for the end and answers the exit code, -1 for a process ended by a signal.
func (p *Process) Wait(atMost time.Duration) (int, error) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(atMost):
		return 0, fmt.Errorf("%s after %v: %w", p.Name, atMost, ErrStillRunning)
	}
}

// Kill ends the process with SIGKILL and waits until the kernel has taken its sockets away.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // already gone is what we want
	<-p.done
}

// Stop asks with SIGTERM and, if that does not help in time, kills.
func (p *Process) Stop(atMost time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if _, err := p.Wait(atMost); err != nil {
		p.Kill()
	}
}

// Output is what the process has written so far.
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

// Lines collects the lines a process prints, for readers that wait for one. It is an io.Writer.
type Lines struct {
	mu      sync.Mutex // guards the rest
	lines   []string
	partial []byte
	changed chan struct{} // closed and renewed at each new line
}

// Write takes any piece of the stream.
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

// Snapshot is a copy of the lines so far, with a channel that is closed when there are more.
func (l *Lines) Snapshot() ([]string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return append([]string(nil), l.lines...), l.changed
}
