package integration_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"broker/integration/harness"
)

// terminal collects what a program writes to its terminal.
type terminal struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (s *terminal) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// since returns what was written after the first n bytes, without escape sequences, and how many bytes there are now.
func (s *terminal) since(n int) (string, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ansi.Strip(string(s.text.Bytes()[n:])), s.text.Len()
}

// TestTopInATerminal runs broker top in a pseudo-terminal, changes the screen with keys, pauses a queue and quits.
func TestTopInATerminal(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	env := []string{
		"BROKER_URL=http://" + b.HTTP, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color",
		"BROKER=" + harness.Binary(t),
	}
	runShell(t, `$BROKER push emails '["a"]' --type SendEmail && $BROKER push reports x`, env)

	cmd := exec.CommandContext(t.Context(), harness.Binary(t), "top", "--interval", "100ms")
	cmd.Env = env
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 20, Cols: 120})
	check(t, err)
	defer func() { _ = tty.Close() }() // its program has ended
	var screen terminal
	copied := make(chan struct{})
	go func() { // ends with the terminal
		defer close(copied)
		buffer := make([]byte, 4096)
		for {
			n, err := tty.Read(buffer)
			_, _ = screen.Write(buffer[:n]) // never fails
			if err != nil {
				return
			}
		}
	}()
	seen := 0
	press := func(keys, want string) {
		t.Helper()
		_, err := tty.WriteString(keys)
		check(t, err)
		harness.Eventually(t, func() string {
			if text, _ := screen.since(seen); !strings.Contains(text, want) {
				return want + " is not on the screen: " + text
			}
			return ""
		})
		_, seen = screen.since(seen)
	}
	press("", "emails")
	press("p", "pause queue emails?")
	press("y", "paused")
	press("\r", "SendEmail")
	press("\r", "from         http")
	press("w", "PROTOCOL")
	if text := runShell(t, "$BROKER queues emails", env); !strings.Contains(text, "paused") {
		t.Errorf("the queue is not paused:\n%s", text)
	}
	_, err = tty.WriteString("q")
	check(t, err)
	done := time.AfterFunc(harness.Patience, func() { _ = cmd.Process.Kill() }) // then Wait returns an error
	defer done.Stop()
	check(t, cmd.Wait())
	<-copied
}
