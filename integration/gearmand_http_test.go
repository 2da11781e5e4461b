package integration_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// gearmandHTTP is a server with gearmand's HTTP protocol.
type gearmandHTTP struct{ gearman, http string }

// startGearmandsHTTP starts the broker and gearmand with the same options.
func startGearmandsHTTP(t *testing.T) (broker, reference gearmandHTTP) {
	t.Helper()
	harness.Need(t, "gearmand")
	options := func() (address string, args []string) {
		address, err := server.FreeAddr()
		check(t, err)
		_, port := server.Split(address)
		return address, []string{"--protocol=http", "--http-port=" + port, "--job-handle-prefix=H:test"}
	}
	var args []string
	broker.http, args = options()
	p, addr := startGearmand(t, t.TempDir(), args...)
	broker.gearman = addr
	check(t, server.WaitListening(p, broker.http, harness.Patience))
	reference.http, args = options()
	peer, err := server.StartGearmand(t.TempDir(), args...)
	check(t, err)
	t.Cleanup(peer.Kill)
	check(t, server.WaitListening(peer.Process, reference.http, harness.Patience))
	reference.gearman = peer.Addr
	return broker, reference
}

// exchange sends a request, lets a worker do its job unless function is empty, and returns the job and the answer.
func (g gearmandHTTP) exchange(t *testing.T, request, function, result string) (job, answer string) {
	t.Helper()
	conn, err := net.Dial("tcp", g.http)
	check(t, err)
	defer func() { _ = conn.Close() }() // everything was read
	_, err = io.WriteString(conn, request)
	check(t, err)
	if function != "" {
		w, err := gearmanclient.Dial(g.gearman)
		check(t, err)
		defer func() { _ = w.Close() }() // the job has ended
		check(t, w.Send(gearmanclient.CanDo, function))
		handle, name, unique, body, err := w.Grab(harness.Patience)
		check(t, err)
		job = strings.Join([]string{handle, name, unique, body}, "|")
		if result == "" {
			check(t, w.Send(gearmanclient.WorkFail, handle))
		} else {
			check(t, w.Send(gearmanclient.WorkComplete, handle, result))
		}
	}
	b, err := io.ReadAll(conn)
	check(t, err)
	return job, strings.ReplaceAll(string(b), "1.1.20+ds", "1.1.20") // Debian's mark
}

func TestGearmandHTTPAnswersLikeGearmand(t *testing.T) {
	t.Parallel()
	broker, reference := startGearmandsHTTP(t)
	const length = "Content-Length: 3\r\n"
	for _, test := range []struct{ name, request, function, result string }{
		{"post", "POST /f HTTP/1.1\r\nHost: x\r\n" + length + "\r\nabc", "f", "result"},
		{"put", "PUT /f HTTP/1.0\r\n" + length + "\r\nabc", "f", "result"},
		{"get", "GET /f HTTP/1.1\r\n\r\n", "f", "result"},
		{"get with a body", "GET /f HTTP/1.1\r\n" + length + "\r\n", "f", "result"},
		{"no length", "POST /f HTTP/1.1\r\n\r\n", "f", "result"},
		{"lines without CR", "POST /f HTTP/1.1\n\n", "f", "result"},
		{"background", "POST /f HTTP/1.1\r\nX-Gearman-Background: TRUE\r\n" + length + "\r\nabc", "f", "result"},
		{"background head", "HEAD /f HTTP/1.1\r\nX-Gearman-Background: true\r\n\r\n", "f", "result"},
		{"not background", "POST /f HTTP/1.1\r\nX-Gearman-Background: yes\r\n" + length + "\r\nabc", "f", "result"},
		{"unique", "POST /f HTTP/1.1\r\nx-gearman-unique: u 1\r\n" + length + "\r\nabc", "f", "result"},
		{"high", "POST /f HTTP/1.1\r\nX-Gearman-Priority: high\r\n" + length + "\r\nabc", "f", "result"},
		{
			"unknown values", "POST /f HTTP/1.1\r\nX-Gearman-Priority: urgent\r\nX-Other: y\r\n" + length + "\r\nabc",
			"f", "result",
		},
		{"function with slashes", "POST //a/b HTTP/1.1\r\n" + length + "\r\nabc", "a/b", "result"},
		{"function without slash", "POST f HTTP/1.1\r\n" + length + "\r\nabc", "f", "result"},
		{"function with query", "POST /a%20b?c=d HTTP/1.1\r\n" + length + "\r\nabc", "a%20b?c=d", "result"},
		{"no function", "GET / HTTP/1.1\r\n\r\n", "", ""},
		{"large result", "GET /f HTTP/1.1\r\n\r\n", "f", strings.Repeat("x", 100_000)},
	} {
		gotJob, got := broker.exchange(t, test.request, test.function, test.result)
		wantJob, want := reference.exchange(t, test.request, test.function, test.result)
		equal(t, test.name+": job", gotJob, wantJob)
		if strings.Contains(test.request, "HTTP/1.1") { // gearmand answers in HTTP/1.0
			want = strings.Replace(want, "HTTP/1.0 200 OK\r\n", "HTTP/1.1 200 OK\r\nConnection: close\r\n", 1)
			want = strings.Replace(want, "HTTP/1.0 404 NOT_FOUND\r\n",
				"HTTP/1.1 404 NOT_FOUND\r\nConnection: close\r\n", 1)
		}
		equal(t, test.name+": answer", got, want)
	}
}

func TestGearmandHTTPJobThatFails(t *testing.T) {
	t.Parallel()
	broker, reference := startGearmandsHTTP(t)
	const request = "POST /f HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
	_, got := broker.exchange(t, request, "f", "")
	_, want := reference.exchange(t, request, "f", "")
	want = strings.Replace(want, "HTTP/1.0 200 OK\r\n", "HTTP/1.1 200 OK\r\nConnection: close\r\n", 1)
	// gearmand cuts the last digit of the handle off.
	equal(t, "answer", strings.Replace(got, "H:test:1\r\n", "H:test:\r\n", 1), want)
}
