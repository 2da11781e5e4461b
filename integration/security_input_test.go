package integration_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
	"broker/integration/workqclient"
)

// rawConn is a raw connection to any port.
type rawConn struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func dialRawConn(t *testing.T, address string) *rawConn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	check(t, err)
	t.Cleanup(func() { _ = c.Close() }) // it may be gone
	return rawOn(t, c)
}

func rawOn(t *testing.T, c net.Conn) *rawConn {
	t.Helper()
	check(t, c.SetDeadline(time.Now().Add(harness.Patience)))
	return &rawConn{Conn: c, t: t, r: bufio.NewReader(c)}
}

// send writes a request. If the connection was cut off, the next read fails.
func (s *rawConn) send(text string) { _, _ = io.WriteString(s, text) }

// wantLine reads a line that must contain part.
func (s *rawConn) wantLine(part string) {
	s.t.Helper()
	if line, err := s.r.ReadString('\n'); err != nil || !strings.Contains(line, part) {
		s.t.Errorf("read %.100q, %v, want %q", line, err, part)
	}
}

// cutOff reads until the connection ends.
func (s *rawConn) cutOff() string {
	s.t.Helper()
	rest, err := io.ReadAll(s.r)
	if isTimeout(err) {
		s.t.Errorf("still connected after %.100q", rest)
	}
	return string(rest)
}

func gearmanHeader(size uint32) string {
	h := binary.BigEndian.AppendUint32([]byte("\x00REQ"), uint32(gearmanclient.SubmitJobBg))
	return string(binary.BigEndian.AppendUint32(h, size))
}

// It measures the memory of its own broker.
func TestAnnouncedSizesAllocateNoMemory(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Durability: "none", Config: "[faktory]\nmax_body = \"1 MiB\"\n"})
	const each, most = 60, 8 << 20
	uuid := newID()
	for _, test := range []struct{ what, address, text, answer string }{
		{"a Gearman packet of 2 GiB", b.Gearman, gearmanHeader(1<<31-1) + "x", "ARGUMENT_TOO_LARGE"},
		{"a Gearman packet of 4 GiB", b.Gearman, gearmanHeader(1<<32-1) + "x", "ARGUMENT_TOO_LARGE"},
		{"a Gearman packet whose end is beyond 4 GiB", b.Gearman, gearmanHeader(1<<32-12) + "x", "ARGUMENT_TOO_LARGE"},
		{"the largest Gearman packet, announced", b.Gearman, gearmanHeader(64 << 20), ""},
		{"a Workq body of 2 GiB", b.Workq, "add " + uuid + " q 1000 60000 2147483648\r\nx", "-CLIENT-ERROR"},
		{
			"a Workq body beyond all numbers", b.Workq, "add " + uuid + " q 1000 60000 9223372036854775807\r\nx",
			"-CLIENT-ERROR",
		},
		{"the largest Workq body, announced", b.Workq, "add " + uuid + " q 1000 60000 1048576\r\n", ""},
		{"half a greeting", b.Faktory, "HELLO {\"wid\":\"", ""},
	} {
		before, err := server.ResidentBytes(b.PID())
		check(t, err)
		for range each {
			s := dialRawConn(t, test.address)
			s.send(test.text)
			if test.address == b.Faktory {
				s.wantLine("+HI")
			}
			if test.answer == "" {
				continue
			}
			got := make([]byte, 80)
			n, err := s.r.Read(got)
			if err != nil || !strings.Contains(string(got[:n]), test.answer) {
				t.Fatalf("%s: %q, %v", test.what, got[:n], err)
			}
		}
		after, err := server.ResidentBytes(b.PID())
		check(t, err)
		if after-before > most {
			t.Errorf("%s, %d times: %d KiB", test.what, each, (after-before)>>10)
		}
	}
	_, err := harness.DialGearman(t, b).Submit(gearmanclient.SubmitJobBg, "f", "", "x")
	check(t, err)
}

// A Faktory line is buffered up to the limit; the rest is discarded as it arrives.
func TestFaktoryLinesWithoutEndAreDropped(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Durability: "none", Config: "[faktory]\nmax_body = \"256 KiB\"\n"})
	for _, verb := range []string{"PUSH {\"jid\":\"", "PUSHB [", "FETCH ", "BEAT {\"wid\":\"", "x"} {
		s := dialRawConn(t, b.Faktory)
		s.wantLine("+HI")
		s.send("HELLO {\"v\":2}\r\n")
		s.wantLine("+OK")
		before, err := server.ResidentBytes(b.PID())
		check(t, err)
		s.send(verb)
		piece := strings.Repeat("a", 256<<10)
		for range 64 {
			s.send(piece)
		}
		s.send("\r\nQUEUE LATENCY x\r\n")
		s.wantLine("-ERR line is longer than")
		s.wantLine("$")
		after, err := server.ResidentBytes(b.PID())
		check(t, err)
		if after-before > 8<<20 {
			t.Errorf("%s and 16 MiB: %d KiB", verb, (after-before)>>10)
		}
	}
}

func TestNothingIsDoneBeforeHello(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	const push = "PUSH {\"jid\":\"12345678\",\"jobtype\":\"x\",\"queue\":\"q\",\"args\":[]}\r\n"
	for _, password := range []string{"", "secret"} {
		b := harness.Start(t, harness.Options{Durability: "none", Password: password})
		requests := []string{
			push, "INFO\r\n", "FETCH q\r\n", "FLUSH\r\n", "BEAT {\"wid\":\"w\"}\r\n", "END\r\n", "QUEUE PAUSE q\r\n",
			"\r\n",
		}
		if password != "" {
			requests = append(requests, "HELLO {\"v\":2}\r\n", "HELLO {\"v\":2,\"pwdhash\":\"secret\"}\r\n",
				"HELLO {\"v\":1,\"pwdhash\":\"\"}\r\n")
		}
		for _, request := range requests {
			s := dialRawConn(t, b.Faktory)
			s.wantLine("+HI")
			s.send(request + push)
			if strings.HasPrefix(request, "HELLO") {
				s.wantLine("-ERR Invalid password\r\n")
			} else {
				s.wantLine("-ERR ")
			}
			if rest := s.cutOff(); rest != "" {
				t.Errorf("%q: more output: %q", request, rest)
			}
		}
		_, stats, err := b.Get("/stats")
		check(t, err)
		if !strings.Contains(stats, "\"total_enqueued\":0") {
			t.Errorf("there are jobs: %s", stats)
		}
		b.Crash()
	}
}

// Whatever names clients choose, a log line is one JSON object, and health pages contain no names.
func TestClientNamesCannotForgeLogLines(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	const name = "n4me\n{\"level\":\"error\"}\x1b[31m\xff"
	b := harness.Start(t, harness.Options{Config: "[log]\nlevel = \"debug\"\n[http]\nprofiling = true\n"})
	c := harness.DialGearman(t, b)
	_, err := c.Submit(gearmanclient.SubmitJobBg, name, name, name)
	check(t, err)
	check(t, c.Send(gearmanclient.SetClientID, name))
	check(t, c.Send(gearmanclient.CanDo, name))
	s := dialRawConn(t, b.Faktory)
	s.wantLine("+HI")
	text, err := json.Marshal(strings.ToValidUTF8(name, ""))
	check(t, err)
	s.send(fmt.Sprintf("HELLO {\"v\":2,\"wid\":%s,\"hostname\":%s,\"username\":%s,\"labels\":[%s]}\r\n", text, text,
		text, text))
	s.wantLine("+OK")
	s.send(fmt.Sprintf("PUSH {\"jid\":%s,\"jobtype\":%s,\"args\":[%s]}\r\n", text, text, text))
	s.wantLine("+OK")
	s.send("FAIL " + name + "\r\n")
	status, _ := post(t, b, "/api/v1/backup", fmt.Sprintf("{\"dir\": \"/proc/%s\"}", `n4me\n{\"level\":\"error\"}`))
	equal(t, "a backup to nowhere", status, http.StatusInternalServerError)
	for _, path := range []string{"/healthz", "/readyz", "/health"} {
		status, body, err := b.Get(path)
		check(t, err)
		if status != http.StatusOK || strings.Contains(body, "n4me") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	awaitTexts(t, func() string { return metricsOf(t, b) }, "n4me")
	if metrics := metricsOf(t, b); strings.Contains(metrics, "\n{") {
		t.Errorf("/metrics: %.300s", metrics)
	}
	awaitTexts(t, b.Output, "n4me") // without it, the test proves nothing
	for line := range strings.Lines(b.Output()) {
		var entry struct{ Time, Message string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Time == "" || entry.Message == "" ||
			strings.ContainsRune(line, 0x1b) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestShutdownByTextIsOffUnlessItIsAllowed(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	s := dialRawConn(t, b.Gearman)
	for _, command := range []string{"shutdown\n", "SHUTDOWN graceful\n", "shutdown\r\n"} {
		s.send(command)
		s.wantLine("ERR UNKNOWN_COMMAND")
	}
	s.send("version\n")
	s.wantLine("OK")
	allowed := harness.Start(t, harness.Options{Config: "[gearman]\nallow_shutdown = true\n"})
	s = dialRawConn(t, allowed.Gearman)
	s.send("shutdown\n")
	s.wantLine("OK")
	code, err := allowed.Wait(harness.Patience)
	check(t, err)
	equal(t, "exit code", code, 0)
	equal(t, "the other one ended", b.Exited(), false)
}

func TestHTTPForOtherHostsRequiresAuthentication(t *testing.T) {
	t.Parallel()
	cert, key, _ := selfSigned(t)
	dir := t.TempDir()
	secured := filepath.Join(dir, "secured.toml")
	check(t, os.WriteFile(secured,
		fmt.Appendf(nil, "[http]\ntls_cert = %q\ntls_key = %q\ntls_client_ca = %q\n", cert, key, cert), 0o600))
	for _, address := range []string{
		":7420", "0.0.0.0:7420", "[::]:7420", "192.0.2.1:7420", "127.0.0.1:7420,0.0.0.0:7421",
	} {
		r := brokerCommand(t, "serve", "--data", filepath.Join(dir, "data"), "--http", address)
		equal(t, address+": exit code", r.Code, 1)
		if !strings.Contains(r.Stderr, "http.listen: other hosts can reach ") ||
			!strings.Contains(r.Stderr, "http.password") {
			t.Errorf("%s: %s", address, r.Stderr)
		}
		for _, with := range [][]string{{"--password", "secret"}, {"--config", secured}} {
			r := brokerCommand(t, "check-config", "--http", address)
			equal(t, address+" without a key", r.Code, 1)
			r = brokerCommand(t, append([]string{"check-config", "--http", address}, with...)...)
			equal(t, fmt.Sprintf("%s with %s: %s", address, with[0], r.Stderr), r.Code, 0)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !os.IsNotExist(err) {
		t.Errorf("the data folder was touched: %v", err)
	}
}

func TestClientsOutsideOfTheAllowListOfHTTPAreCounted(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Config: "[http]\nallow = [\"127.0.0.1\"]\n"})
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}}
	for range 2 {
		c, err := d.Dial("tcp", b.HTTP)
		check(t, err)
		equal(t, "served", replies(c, "http"), false)
	}
	awaitTexts(t, func() string { return metricsOf(t, b) }, "broker_denied_connections_total{protocol=\"http\"} 2\n")
}

func TestGarbageOnAnyPortDoesNotAffectOthers(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	gearman, wq, fkt := harness.DialGearman(t, b), harness.DialWorkq(t, b), dialFaktory(t, b)
	garbage := []string{
		strings.Repeat("\x00", 4096), strings.Repeat("A", 2<<20), strings.Repeat("\r\n", 1000),
		"\x00REQ\xff\xff\xff\xff\xff\xff\xff\xff",
		"HELLO {" + strings.Repeat("{\"a\":", 100_000) + "\r\n", "PUSH {}\r\n", "add x y z\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "HELLO {\"v\":2}\r\nPUSH [[[[\r\nFETCH\r\nEND\r\n",
	}
	for _, addr := range []string{b.Gearman, b.Workq, b.Faktory, b.HTTP} {
		for _, bytes := range garbage {
			c, err := workqclient.Dial(addr)
			check(t, err)
			_ = c.Send([]byte(bytes)) // the broker may close the connection meanwhile
			check(t, c.Close())
		}
	}
	check(t, gearman.Send(gearmanclient.EchoReq, "x"))
	_, err := gearman.Expect(gearmanclient.EchoRes, harness.Patience)
	check(t, err)
	_, err = wq.Lease(0, "q")
	wantIs(t, err, workqclient.ErrTimeout)
	check(t, fkt.Push(fktJob("alive")))
	if b.Exited() {
		t.Fatal("the broker has exited")
	}
}
