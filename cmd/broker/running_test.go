package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// startedProgram is a program that a test has started.
type startedProgram struct {
	t *testing.T
	*exec.Cmd
	output *transcript
	done   chan struct{}
}

// transcript is the output of a program.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func start(t *testing.T, env []string, name string, args ...string) *startedProgram {
	t.Helper()
	r := &startedProgram{
		t: t, Cmd: exec.Command(program(t, name), args...), output: &transcript{}, done: make(chan struct{}),
	}
	// Other programs may fill the disk of the tests.
	r.Dir = t.TempDir()
	r.Env = append(os.Environ(), "BROKER_MIN_FREE_DISK=0")
	if name == "gearmand" && !slices.Contains(args, "-q") {
		r.Env = append(r.Env, "BROKER_DATA="+filepath.Join(r.Dir, "data")) // not the default folder of this machine
	}
	r.Env = append(r.Env, env...)
	r.Stdout, r.Stderr = r.output, r.output
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = r.Wait() // the exit code is in ProcessState
		close(r.done)
	}()
	t.Cleanup(func() {
		_ = r.Process.Kill() // it may have ended
		<-r.done
		if t.Failed() {
			t.Logf("output of %s %v:\n%s", name, args, r.output)
		}
	})
	return r
}

// wantExit waits until the program ends.
func (r *startedProgram) wantExit(code int) {
	r.t.Helper()
	select {
	case <-r.done:
		if got := r.ProcessState.ExitCode(); got != code {
			r.t.Fatalf("exit %d, want %d", got, code)
		}
	case <-time.After(patience):
		r.t.Fatal("still running")
	}
}

func (r *startedProgram) signal(s os.Signal) {
	r.t.Helper()
	if err := r.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
