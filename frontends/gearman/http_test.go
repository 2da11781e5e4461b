package gearman

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// setupHTTP opens a stage with the HTTP front-end and a worker for the function f.
func setupHTTP(t *testing.T, change func(*Options)) (*frontendtest.Stage, *otherClient) {
	t.Helper()
	newFrontend := newMaker(change)
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		f, _ := newFrontend(b).(*Frontend)
		return f.HTTP()
	})
	w := newStranger(t, s, core.Gearman)
	w.broker.Do(w.id, []core.Op{&core.Register{Queue: "f"}}, nil)
	return s, w
}

// grab leases the next job.
func (x *otherClient) grab() core.Reply {
	x.t.Helper()
	return x.do(&core.Lease{Pick: core.PickByPriority, Holder: core.HeldByConn})
}

// act applies an operation that has no reply, or whose reply does not matter.
func (x *otherClient) act(s *frontendtest.Stage, op core.Op) {
	x.t.Helper()
	for _, r := range x.broker.Do(x.id, []core.Op{op}, nil) {
		if r.Kind == core.Failed {
			x.t.Fatalf("%T: %v", op, r.Err)
		}
	}
	s.Settle()
}

// Status lines with the header that each HTTP version requires.
const (
	http10 = "HTTP/1.0 %s\r\n"
	http11 = "HTTP/1.1 %s\r\nConnection: close\r\n"
)

// httpResult is the answer to the first job of a stage.
func httpResult(version, command, body string) string {
	return fmt.Sprintf(version, "200 OK") + "X-Gearman-Job-Handle: H:host:1\r\nX-Gearman-Command: " + command +
		"\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\nServer: Gearman/1.1.20\r\n\r\n" + body
}

func httpRefusal(version, status string) string {
	return fmt.Sprintf(version, status) + "Server: Gearman/1.1.20\r\nContent-Length: 0\r\n\r\n"
}

func TestHTTPForegroundJob(t *testing.T) {
	t.Parallel()
	s, w := setupHTTP(t, nil)
	c := s.Dial("client")
	c.Send(
		"POST /f HTTP/1.1\r\nHost: x\r\ncontent-length:3\r\nX-Gearman-Unique: u\r\nX-Gearman-Priority: high\r\n\r\nabc",
	)
	c.WantSilence()
	r := w.grab()
	if j := r.Job; string(j.Body) != "abc" || uniqueOf(j) != "u" || j.Priority != 1 || !j.Ephemeral ||
		j.Origin != core.Gearman {
		t.Errorf("job: %+v", j)
	}
	w.act(s, &core.SendData{Ref: core.Ref{Seq: r.Seq}, Data: []byte("one ")})
	w.act(s, &core.SendData{Ref: core.Ref{Seq: r.Seq}, Data: []byte("careful"), Warning: true})
	c.WantSilence()
	w.act(s, &core.Complete{Ref: core.Ref{Seq: r.Seq}, Result: []byte("two")})
	c.Want(httpResult(http11, "WORK_COMPLETE", "one two"))
	c.WantClosed()
}

func TestHTTPBackgroundJob(t *testing.T) {
	t.Parallel()
	s, w := setupHTTP(t, nil)
	c := s.Dial("client")
	c.Send("PUT //f HTTP/1.0\nX-GEARMAN-BACKGROUND: TRUE\nX-Gearman-Priority: low\nX-Unknown: y\nTraceparent: " +
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\ntracestate: a=1\nContent-Length: 1\n\nx and more")
	c.Want(httpResult(http10, "JOB_CREATED", ""))
	c.WantClosed()
	if j := w.grab().Job; string(j.Body) != "x" || uniqueOf(j) != "-" || j.Priority != -1 || j.Ephemeral ||
		j.Trace != "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 a=1" {
		t.Errorf("job: %+v", j)
	}
}

func TestHTTPJobThatFails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		forAll  bool
		failure core.Failure
		want    string
	}{
		{false, core.Failure{}, httpResult(http11, "WORK_FAIL", "")},
		{false, core.Failure{Exception: true, Data: []byte("oops")}, httpResult(http11, "WORK_FAIL", "")},
		{true, core.Failure{Exception: true, Data: []byte("oops")}, httpResult(http11, "WORK_EXCEPTION", "oops")},
	} {
		s, w := setupHTTP(t, func(o *Options) { o.ExceptionsForAll = test.forAll })
		c := s.Dial("client")
		c.Send("GET /f HTTP/1.1\r\n\r\n")
		w.act(s, &core.Fail{Ref: core.Ref{Seq: w.grab().Seq}, Failure: &test.failure})
		c.Want(test.want)
		c.WantClosed()
	}
}

func TestHTTPHeadHasNoBody(t *testing.T) {
	t.Parallel()
	s, w := setupHTTP(t, nil)
	c := s.Dial("client")
	c.Send("HEAD /f HTTP/1.1\r\n\r\n")
	w.act(s, &core.Complete{Ref: core.Ref{Seq: w.grab().Seq}, Result: []byte("result")})
	c.Want(
		"HTTP/1.1 200 OK\r\nConnection: close\r\nX-Gearman-Job-Handle: H:host:1\r\nContent-Length: 6\r\nServer: Gearman/1.1.20\r\n\r\n",
	)
	c.WantClosed()
	c = s.Dial("monitor")
	c.Send("HEAD / HTTP/1.1\r\n\r\n")
	c.Want("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\nServer: Gearman/1.1.20\r\n\r\n")
	c.WantClosed()
}

func TestHTTPRefusals(t *testing.T) {
	t.Parallel()
	s, _ := setupHTTP(t, nil)
	for _, test := range []struct{ in, version, status string }{
		{"garbage\r\n", http10, "400 BAD_REQUEST"},
		{"POST /f HTTP/2.0\r\n", http10, "400 BAD_REQUEST"},
		{"POST /f\x00g HTTP/1.1\r\n", http11, "400 BAD_REQUEST"},
		{"POST /f HTTP/1.1\r\nContent-Length: -5\r\n", http11, "400 BAD_REQUEST"},
		{"GET /f HTTP/1.1\r\nX-Gearman-Unique: " + strings.Repeat("u", 65) + "\r\n\r\n", http11, "400 BAD_REQUEST"},
		{"GET /f HTTP/1.1\r\nX-Gearman-Unique: a\x00b\r\n\r\n", http11, "400 BAD_REQUEST"},
		{"GET /" + strings.Repeat("f", core.MaxQueueName+1) + " HTTP/1.1\r\n\r\n", http11, "400 BAD_REQUEST"},
		{"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n", http11, "404 NOT_FOUND"},
		{"GET / HTTP/1.1\r\n\r\n", http11, "404 NOT_FOUND"},
		{"TRACE /f HTTP/1.1\r\n\r\n", http11, "405 METHOD_NOT_ALLOWED"},
		{"POST /f HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", http11, "411 LENGTH_REQUIRED"},
		{"POST /f HTTP/1.1\r\nContent-Length: 262145\r\n\r\n", http11, "413 REQUEST_ENTITY_TOO_LARGE"},
		{"GET /" + strings.Repeat("f", 65<<10), http10, "431 REQUEST_HEADER_FIELDS_TOO_LARGE"},
		{
			"GET /f HTTP/1.1\r\nX: " + strings.Repeat("y", 65<<10) + "\r\n\r\n", http11,
			"431 REQUEST_HEADER_FIELDS_TOO_LARGE",
		},
	} {
		c := s.Dial("client")
		c.Send(test.in)
		c.Want(httpRefusal(test.version, test.status))
		c.WantClosed()
	}
}

func TestHTTPSilentClientIsClosed(t *testing.T) {
	t.Parallel()
	s, _ := setupHTTP(t, nil)
	silent, waiting := s.Dial("silent"), s.Dial("waiting")
	silent.Send("POST /f HTTP/1.1\r\n")
	waiting.Send("GET /f HTTP/1.1\r\n\r\n")
	s.Advance(httpReadTimeout - 1)
	silent.Send("Content-Length: 3\r\n\r\n")
	s.Advance(httpReadTimeout - 1)
	if silent.Closed() {
		t.Error("closed although the client has sent something")
	}
	s.Advance(httpReadTimeout)
	silent.WantClosed()
	waiting.WantSilence()
}

func TestHTTPRequestInParts(t *testing.T) {
	t.Parallel()
	s, w := setupHTTP(t, nil)
	s.Split = true
	c := s.Dial("client")
	c.Send("\r\nPOST /f?a=%20 HTTP/1.1\r\nContent-Length: 3\r\nX-Gearman-Background: true\r\n\r\nabc")
	c.Want(httpResult(http11, "JOB_CREATED", ""))
	w.broker.Do(w.id, []core.Op{&core.Register{Queue: "f?a=%20"}}, nil)
	if j := w.grab().Job; string(j.Body) != "abc" {
		t.Errorf("job: %+v", j)
	}
}

func FuzzParseHTTP(f *testing.F) {
	f.Add([]byte("POST /f HTTP/1.1\r\nContent-Length: 3\r\nX-Gearman-Unique: u\r\n\r\nabc"), 10)
	f.Add([]byte("\nHEAD  / HTTP/1.0\nTransfer-Encoding: x\n\n"), 0)
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		const maxBody = 1 << 10
		r, status, done := parseHTTP(in, maxBody)
		if done && status == "" &&
			(len(r.workload) != r.length || r.length > maxBody || len(r.function) == 0 && !r.head) {
			t.Errorf("accepted: %+v", r)
		}
		if cut < 0 || cut > len(in) {
			return
		}
		part, early, ended := parseHTTP(in[:cut], maxBody)
		if ended && early == "" && (!done || status != "" || string(part.workload) != string(r.workload)) {
			t.Errorf("complete after %d bytes, then %q, %v", cut, status, done)
		}
	})
}
