package integration_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
	"broker/integration/server"
)

// qlessConn is a connection of a Redis client.
type qlessConn struct {
	conn net.Conn
	r    *bufio.Reader
}

// qlessScript is enough of the script for the broker to recognize it.
const qlessScript = "local QlessAPI = {}"

func dialQless(addr string) (*qlessConn, error) {
	conn, err := net.DialTimeout("tcp", addr, harness.Patience)
	if err != nil {
		return nil, err
	}
	return &qlessConn{conn, bufio.NewReader(conn)}, nil
}

// call calls an operation at the time of the machine and returns the reply, which is a string or a number. While the
// broker loads its state after a start, it asks again, as clients of Redis do.
func (c *qlessConn) call(operation string, words ...string) (string, error) {
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		reply, err := c.callOnce(operation, words...)
		if err != nil || !strings.HasPrefix(reply, "-LOADING ") || time.Since(begin) > harness.Patience {
			return reply, err
		}
	}
}

func (c *qlessConn) callOnce(operation string, words ...string) (string, error) {
	now := strconv.FormatFloat(float64(time.Now().UnixMicro())/1e6, 'f', -1, 64)
	words = append([]string{"EVAL", qlessScript, "0", operation, now}, words...)
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if err := c.conn.SetDeadline(time.Now().Add(harness.Patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c.conn, b.String()); err != nil {
		return "", err
	}
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if !strings.HasPrefix(line, "$") || line == "$-1" {
		return line, nil
	}
	size, err := strconv.Atoi(line[1:])
	if err != nil {
		return "", err
	}
	body := make([]byte, size+2)
	_, err = io.ReadFull(c.r, body)
	return string(body[:size]), err
}

func startQless(t *testing.T) (b *harness.Broker, addr string) {
	t.Helper()
	addr, err := server.FreeAddr()
	check(t, err)
	return harness.Start(t, harness.Options{Args: []string{"--qless", addr}}), addr
}

// qlessLedger is what was acknowledged.
type qlessLedger struct {
	mu        sync.Mutex
	put, done map[string]bool
	asked     map[string]bool // complete was sent
}

// worker puts, pops and completes jobs until the broker is gone.
func (l *qlessLedger) worker(addr string, number int) error {
	c, err := dialQless(addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }()
	name := "worker-" + strconv.Itoa(number)
	for n := 0; ; n++ {
		jid := fmt.Sprintf("job-%d-%d", number, n)
		if got, err := c.call("put", name, "crash", jid, "K", `{"n":1}`, "0", "tags", `["t"]`); err != nil ||
			got != jid {
			return nil
		}
		l.note(l.put, jid)
		if n%3 != 0 {
			continue
		}
		text, err := c.call("pop", "crash", name, "1")
		var jobs []struct{ Jid string }
		if err != nil || json.Unmarshal([]byte(text), &jobs) != nil || len(jobs) == 0 {
			return nil
		}
		l.note(l.asked, jobs[0].Jid)
		if got, err := c.call("complete", jobs[0].Jid, name, "crash", "{}"); err != nil || got != "complete" {
			return nil
		}
		l.note(l.done, jobs[0].Jid)
	}
}

func (l *qlessLedger) note(in map[string]bool, jid string) {
	l.mu.Lock()
	in[jid] = true
	l.mu.Unlock()
}

func TestQlessKeepsWhatItAcknowledgedThroughKills(t *testing.T) {
	t.Parallel()
	b, addr := startQless(t)
	for round := range 2 {
		l := &qlessLedger{put: map[string]bool{}, done: map[string]bool{}, asked: map[string]bool{}}
		var running sync.WaitGroup
		for i := range 8 {
			running.Go(func() {
				if err := l.worker(addr, 100*round+i); err != nil {
					t.Error(err)
				}
			})
		}
		for begin := time.Now(); time.Since(begin) < harness.Patience; time.Sleep(10 * time.Millisecond) {
			l.mu.Lock()
			enough := len(l.done) > 200
			l.mu.Unlock()
			if enough {
				break
			}
		}
		b.Crash()
		running.Wait()
		b.Restart()
		c, err := dialQless(addr)
		check(t, err)
		missing, again := 0, 0
		for jid := range l.put {
			text, err := c.call("get", jid)
			check(t, err)
			var job struct{ State string }
			switch {
			case json.Unmarshal([]byte(text), &job) != nil:
				missing++
			case l.done[jid] && job.State != "complete", job.State == "complete" && !l.asked[jid]:
				again++
			}
		}
		equal(t, "acknowledged jobs that are missing", missing, 0)
		equal(t, "acknowledged ends that are undone, or ends of nobody", again, 0)
		t.Logf("round %d: %d puts, %d completions", round, len(l.put), len(l.done))
		check(t, c.conn.Close())
	}
}

func TestQlessAndFaktoryShareAQueue(t *testing.T) {
	t.Parallel()
	b, addr := startQless(t)
	c, err := dialQless(addr)
	check(t, err)
	fkt := dialFaktory(t, b)
	check(t, fkt.Push(faktory.NewJob("Resize", "photo.png")))
	text, err := c.call("pop", "default", "w", "1")
	check(t, err)
	var jobs []struct{ Jid, Klass, Data string }
	check(t, json.Unmarshal([]byte(text), &jobs))
	equal(t, "jobs", len(jobs), 1)
	equal(t, "klass and data", jobs[0].Klass+" "+jobs[0].Data, `Resize ["photo.png"]`)
	got, err := c.call("complete", jobs[0].Jid, "w", "default", "{}")
	check(t, err)
	equal(t, "complete", got, "complete")
	_, err = c.call("put", "me", "default", "from-qless", "Resize", `["other.png"]`, "0")
	check(t, err)
	job, err := fkt.Fetch("default")
	check(t, err)
	equal(t, "job of Qless", job.Jid+" "+job.Type+" "+fmt.Sprint(job.Args), "from-qless Resize [other.png]")
	check(t, fkt.Ack(job.Jid))
	text, err = c.call("get", "from-qless")
	check(t, err)
	equal(t, "state after ACK", strings.Contains(text, `"state":"complete"`), true)
}
