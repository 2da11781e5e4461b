package replica

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
)

// logged are the lines of all nodes of level info and above.
type logged struct {
	mu    sync.Mutex // guards lines
	lines []string
}

// of makes a node's messages begin with its id.
func (l *logged) of(id string) func(slog.Level, string, ...any) {
	return func(level slog.Level, text string, fields ...any) {
		if level >= slog.LevelInfo {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.lines = append(l.lines,
				strings.TrimSuffix(fmt.Sprintln(append([]any{id, level, text}, fields...)...), "\n"))
		}
	}
}

// count is how many lines have a text in them.
func (l *logged) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// A node that does not answer causes one line in the log of each other node, however long it is away, and one line when
// it is back.
func TestNodeThatDoesNotAnswerIsReportedOnce(t *testing.T) {
	t.Parallel()
	var log logged
	c := newCluster(t, "n1", "n2", "n3")
	c.change = func(o *Options) { o.Log = log.of(o.ID) }
	c.start("n1", "n2", "n3")
	n, _, e := c.leader()
	c.caughtUp()
	away := c.follower(n)
	c.stop(away)
	silent, back := "WARN a node does not answer node "+away, "INFO a node answers again node "+away
	for _, want := range []string{silent, back} {
		eventually(t, func() string {
			for id := range c.nodes {
				if id != away && log.count(id+" "+want) == 0 {
					return id + " does not log: " + want
				}
			}
			return ""
		})
		if c.nodes[away] == nil {
			c.start(away)
		}
	}
	if log.count(silent) != 2 || log.count(back) != 2 || log.count("heartbeat") > 0 {
		t.Errorf("%q", log.lines)
	}
	shutdown(t, e)
}

// Whoever hangs up before a greeting was not refused: a node that has died, or a check whether the port is open.
func TestHangupIsNotReportedAsRefused(t *testing.T) {
	t.Parallel()
	n := newReceiver(t)
	for say, refused := range map[string]int{
		"": 0, magic[:3]: 0, magic + "\x00\x00\x00\x09{}": 0, "GET / HTTP/1.1\r\nHost: example.com\r\n": 1,
	} {
		var log logged
		n.log = newLogger(log.of("n1"))
		near, far := net.Pipe()
		go func() { // ends with far
			_, _ = io.WriteString(near, say) // the node may close it before
			_ = near.Close()
		}()
		n.accept(far)
		if got := log.count("WARN connection between nodes refused"); got != refused {
			t.Errorf("after %q: %q", say, log.lines)
		}
	}
}
