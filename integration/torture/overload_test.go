package torture_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
	"broker/integration/workqclient"
)

// metric reads a value from /metrics; 0 if it is missing.
func metric(t testing.TB, b *harness.Broker, name string) int {
	t.Helper()
	_, text, err := b.Get("/metrics")
	check(t, err)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			check(t, err)
			return int(f)
		}
	}
	return 0
}

func TestConnectionLimitIsReportedAndReleased(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	const limit = 20
	b := harness.Start(t, harness.Options{Config: fmt.Sprintf(
		"[workq]\nmax_connections = %d\n[gearman]\nmax_connections = %d\n[faktory]\nmax_connections = %d\n", limit,
		limit, limit)})
	for protocol, test := range map[string]struct{ address, hello, welcome, refusal string }{
		"workq": {b.Workq, "lease q 0\r\n", "-TIMEOUT\r\n", "-SERVER-ERROR"},
		"gearman": {
			b.Gearman, "\x00REQ\x00\x00\x00\x10\x00\x00\x00\x00", "\x00RES\x00\x00\x00\x11\x00\x00\x00\x00",
			"\x00RES\x00\x00\x00\x13",
		},
		"faktory": {b.Faktory, "HELLO {\"v\":2}\r\n", "+HI {\"v\":2}\r\n+OK\r\n", "-ERR"},
	} {
		var conns []net.Conn
		for range limit {
			c := dial(t, test.address)
			_, err := io.WriteString(c, test.hello)
			check(t, err)
			// all of it: a client of Faktory is counted when its HELLO is accepted
			welcome := make([]byte, len(test.welcome))
			_, err = io.ReadFull(c, welcome)
			check(t, err)
			equal(t, protocol, string(welcome), test.welcome)
			conns = append(conns, c)
		}
		over := dial(t, test.address)
		_, _ = io.WriteString(over, test.hello) // it may be closed already
		check(t, over.SetReadDeadline(time.Now().Add(harness.Patience)))
		text, _ := io.ReadAll(over) // how the connection ends does not matter
		if !strings.Contains(string(text), test.refusal) {
			t.Errorf("%s: the refused connection received %q", protocol, text)
		}
		check(t, conns[0].Close())
		harness.Eventually(t, func() string {
			c, err := net.Dial("tcp", test.address)
			check(t, err)
			defer func() { _ = c.Close() }() // the reply was read
			_, _ = io.WriteString(c, test.hello)
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			buf := make([]byte, 100)
			n, _ := c.Read(buf)
			if n == 0 || strings.Contains(string(buf[:n]), test.refusal) {
				return fmt.Sprintf("%s: still refused after one connection was closed: %q", protocol, buf[:n])
			}
			return ""
		})
	}
}

func TestFullQueueRefusesJobsOfAllProtocols(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	gearman, wq := harness.DialGearman(t, b), harness.DialWorkq(t, b)
	for _, order := range []string{"create function narrow", "maxqueue narrow 10"} {
		reply, err := gearman.Admin(order)
		check(t, err)
		equal(t, order, reply, "OK\r\n")
	}
	for range 10 {
		_, err := gearman.Submit(gearmanclient.SubmitJobBg, "narrow", "", "x")
		check(t, err)
	}
	check(t, gearman.Send(gearmanclient.SubmitJobBg, "narrow", "", "x"))
	p, err := gearman.Expect(gearmanclient.Error, harness.Patience)
	check(t, err)
	equal(t, "gearman", p.Args(2)[0], "QUEUE_ERROR")
	id := "9d8f9b3e-5a0b-4f6c-8a43-0d0c8a7b6e11"
	job := workqclient.Job{ID: id, Name: "narrow", TTR: time.Minute, TTL: time.Hour, Wait: harness.Patience}
	if err := wq.Add(job); err == nil || !strings.Contains(err.Error(), "Queue full") {
		t.Errorf("workq: %v", err)
	}
	fkt, err := harness.OpenFaktory(b, harness.Patience)
	check(t, err)
	defer func() { _ = fkt.Close() }() // every reply was read
	push := faktory.NewJob("x", 1)
	push.Queue = "narrow"
	if err := fkt.Push(push); err == nil || !strings.HasPrefix(err.Error(), "ERR ") ||
		!strings.Contains(err.Error(), "full") {
		t.Errorf("faktory: %v", err)
	}
	job.Name, push.Queue = "wide", "wide"
	check(t, wq.Add(job))
	check(t, fkt.Push(push))
	_, err = gearman.Submit(gearmanclient.SubmitJobBg, "wide", "", "x")
	check(t, err)
	_, err = wq.Lease(0, "narrow")
	check(t, err)
}

// TestConnectionsHaveKeepalive reads from the kernel that keepalive is enabled: a vanished peer is detected after 60 s
// and six probes of 10 s.
func TestConnectionsHaveKeepalive(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	for protocol, address := range map[string]string{
		"workq": b.Workq, "gearman": b.Gearman, "faktory": b.Faktory, "http": b.HTTP,
	} {
		_, port := server.Split(address)
		harness.Eventually(t, func() string {
			c := dial(t, address) // a silent one is closed after ten seconds
			if protocol == "faktory" {
				_, err := c.Read(make([]byte, 3)) // the greeting shows that the session is open
				check(t, err)
			}
			_, clientPort := server.Split(c.LocalAddr().String())
			timer, seconds := kernelTimer(t, port, clientPort)
			const keepalive = "02"
			if timer != keepalive || seconds > 61 {
				return fmt.Sprintf("%s: timer %q runs for %.0f s", protocol, timer, seconds)
			}
			return ""
		})
	}
}

// kernelTimer reads the timer of the server's side of a connection from /proc/net/tcp.
func kernelTimer(t *testing.T, localPort, remotePort string) (kind string, seconds float64) {
	t.Helper()
	text, err := os.ReadFile("/proc/net/tcp")
	check(t, err)
	hex := func(port string) string {
		n, err := strconv.Atoi(port)
		check(t, err)
		return fmt.Sprintf(":%04X", n)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 6 || !strings.HasSuffix(f[1], hex(localPort)) || !strings.HasSuffix(f[2], hex(remotePort)) {
			continue
		}
		kind, when, _ := strings.Cut(f[5], ":")
		ticks, err := strconv.ParseInt(when, 16, 64)
		check(t, err)
		return kind, float64(ticks) / 100 // USER_HZ
	}
	return "", 0
}
