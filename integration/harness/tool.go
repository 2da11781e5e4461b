package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"broker/integration/server"
)

// Command is a program to run.
type Command struct {
	Argv  []string
	Env   []string
	Stdin string
}

// Result is the output and the exit code of a program.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Exec runs a program, which must end in time. The caller checks the exit code.
func Exec(t testing.TB, c Command) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Stdin = strings.NewReader(c.Stdin)
	// The brokers that the user of this machine has named are not the ones under test.
	cmd.Env = append(append(os.Environ(), "BROKER_CONTEXT=", "XDG_CONFIG_HOME="+t.TempDir()), c.Env...)
	cmd.WaitDelay = server.WaitDelay
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	r := Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
	if ctx.Err() != nil {
		t.Fatalf("%q did not end within %v\nstdout: %s\nstderr: %s", c.Argv, Patience, r.Stdout, r.Stderr)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", c.Argv, err)
	}
	return r
}

// Run runs a program that must succeed and returns its standard output.
func Run(t testing.TB, c Command) string {
	t.Helper()
	r := Exec(t, c)
	if r.Code != 0 {
		t.Fatalf("%q: exit code %d\nstdout: %s\nstderr: %s", c.Argv, r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// Child is a client program in the background, usually a worker.
type Child struct {
	*server.Process

	Lines *server.Lines
	t     testing.TB
}

// Spawn starts a program that runs until the test ends.
func Spawn(t testing.TB, c Command) *Child {
	t.Helper()
	lines := &server.Lines{}
	p, err := server.Launch(server.Spec{
		Name: filepath.Base(c.Argv[0]), Argv: c.Argv, Env: c.Env, Logs: t.TempDir(), Stdout: lines,
		Stdin: strings.NewReader(c.Stdin),
	})
	if err != nil {
		t.Fatal(err)
	}
	child := &Child{Process: p, Lines: lines, t: t}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			out, _ := lines.Snapshot()
			t.Logf("%q printed:\n%s\n%s", c.Argv, strings.Join(out, "\n"), p.Tail())
		}
	})
	return child
}

// AwaitLines waits until the program has printed n matching lines, and returns all matching lines.
func (c *Child) AwaitLines(n int, match func(line string) bool) []string {
	c.t.Helper()
	deadline := time.After(Patience)
	for {
		lines, more := c.Lines.Snapshot()
		var found []string
		for _, l := range lines {
			if match(l) {
				found = append(found, l)
			}
		}
		if len(found) >= n {
			return found
		}
		select {
		case <-more:
		case <-c.Done():
			// The last lines may have been printed just before the end.
			if again, _ := c.Lines.Snapshot(); len(again) == len(lines) {
				c.t.Fatalf("%s ended with %d of %d lines:\n%s", c.Name, len(found), n, c.Tail())
			}
		case <-deadline:
			c.t.Fatalf("%s printed %d of %d lines within %v", c.Name, len(found), n, Patience)
		}
	}
}

// Event is an event that one of our client programs prints as a line of JSON.
type Event struct {
	Event  string `json:"event"`
	Func   string `json:"func"`   // the function, or the job's type
	ID     string `json:"id"`     // the handle, or the jid
	Unique string `json:"unique"` // Gearman only
	Data   []byte `json:"data"`   // base64 on the wire: it may be any bytes
	Error  string `json:"error"`
	Num    int    `json:"num"` // progress
	Den    int    `json:"den"`
	Known  bool   `json:"known"` // status
	Active bool   `json:"active"`

	Custom json.RawMessage `json:"custom"` // Faktory only
}

// ParseEvents parses the events in out and ignores all other lines.
func ParseEvents(t testing.TB, out string) []Event {
	t.Helper()
	var events []Event
	for line := range strings.Lines(out) {
		if e, ok := parseEvent(t, line); ok {
			events = append(events, e)
		}
	}
	return events
}

func parseEvent(t testing.TB, line string) (e Event, ok bool) {
	t.Helper()
	if !strings.HasPrefix(line, "{") {
		return e, false
	}
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatalf("event %q: %v", line, err)
	}
	return e, true
}

// Await waits for n events of a kind, and returns all events of that kind so far.
func (c *Child) Await(kind string, n int) []Event {
	c.t.Helper()
	lines := c.AwaitLines(n, func(l string) bool {
		e, ok := parseEvent(c.t, l)
		return ok && e.Event == kind
	})
	return ParseEvents(c.t, strings.Join(lines, "\n"))
}
