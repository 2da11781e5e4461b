package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// loggingServer has one job. It records the requests for its log and answers them with a given status.
func loggingServer(t *testing.T, status int, answer string) (w *worker, logged func() [][]string, ended func() string) {
	t.Helper()
	var requests [][]string
	given, end := false, ""
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is missing fails the test
		switch verb := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; {
		case verb == "lease" && !given:
			given = true
			_, _ = io.WriteString(rw, `{"lease":"t","job":{"id":"j"}}`)
		case verb == "lease":
			rw.WriteHeader(http.StatusNoContent)
		case verb == "log":
			var sent struct{ Lines []string }
			if err := json.Unmarshal(body, &sent); err != nil {
				t.Error(err)
			}
			requests = append(requests, sent.Lines)
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, answer)
		case verb == "heartbeat":
			_, _ = io.WriteString(rw, `{}`)
		default:
			end = verb + " " + string(body)
			rw.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/api/v1/")
	if err != nil {
		t.Fatal(err)
	}
	w = &worker{
		client: &client{base: base, http: server.Client()}, queues: []string{"a"}, quit: true, logs: true,
		log: io.Discard, grace: 10 * time.Second,
	}
	return w, func() [][]string { return requests }, func() string { return end }
}

func TestBothOutputsOfAProgramGoToTheLogOfItsJob(t *testing.T) {
	t.Parallel()
	w, logged, ended := loggingServer(t, 200, `{}`)
	w.program = []string{"sh", "-c", `echo one; echo two >&2; printf '\nlast\377'; printf 'odd\r\n' >&2`}
	if err := w.run(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	lines := slices.Concat(logged()...)
	slices.Sort(lines) // both outputs are read concurrently
	if fmt.Sprintf("%q", lines) != `["" "last�" "odd" "one" "two"]` {
		t.Errorf("lines %q", lines)
	}
	if !strings.HasPrefix(ended(), "complete") || !strings.Contains(ended(), "result") {
		t.Errorf("in the end: %s", ended())
	}
}

func TestWithoutLogNothingIsSent(t *testing.T) {
	t.Parallel()
	w, logged, _ := loggingServer(t, 200, `{}`)
	w.logs, w.program = false, []string{"echo", "one"}
	if err := w.run(t.Context(), 1); err != nil || logged() != nil {
		t.Errorf("%v, lines %q", err, logged())
	}
}

// A program with a lot of output causes only one request per second.
func TestChattyProgramCostsFewRequests(t *testing.T) {
	t.Parallel()
	w, logged, _ := loggingServer(t, 200, `{}`)
	w.program = []string{"sh", "-c", `seq 1 200000; echo end`}
	if err := w.run(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	requests := logged()
	if len(requests) == 0 || len(requests) > 10 {
		t.Fatalf("%d requests", len(requests))
	}
	for _, lines := range requests {
		if n := len(lines); n > 1000 || len(strings.Join(lines, "")) > 2*maxLogBytes+100 {
			t.Errorf("%d lines", n)
		}
	}
	last := requests[len(requests)-1]
	if requests[0][0] != "1" || last[len(last)-1] != "end" ||
		!strings.HasPrefix(strings.Join(requests[0], "|"), "1|2|3|4|") {
		t.Errorf("from %q to %q", requests[0][0], last[len(last)-1])
	}
}

func TestReplyToLogLinesStopsACancelledProgram(t *testing.T) {
	t.Parallel()
	w, _, ended := loggingServer(t, 200, `{"cancel_requested":true}`)
	w.program = []string{"sh", "-c", `trap 'exit 9' TERM; echo one; sleep 60 & wait`}
	if err := w.run(t.Context(), 1); err == nil || !strings.Contains(ended(), "exit status 9") {
		t.Errorf("%v, in the end: %s", err, ended())
	}
}

// A job without a log ends normally, and its worker stops sending log lines.
func TestRefusedLogIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w, logged, ended := loggingServer(t, 409, `{"code":"wrong_state","status":409}`)
	var said bytes.Buffer
	w.log, w.program = &said, []string{"sh", "-c", `echo one; sleep 1.5; echo two; sleep 1.2; echo three`}
	if err := w.run(t.Context(), 1); err != nil || len(logged()) != 1 || !strings.HasPrefix(ended(), "complete") {
		t.Errorf("%v, %d requests, in the end %s", err, len(logged()), ended())
	}
	if strings.Count(said.String(), "log") != 1 {
		t.Errorf("said %s", said.String())
	}
}

func TestLinesThatCouldNotBeSentAreSentLater(t *testing.T) {
	t.Parallel()
	var got []string
	fail := true
	log := &programLog{send: func(lines []string) (bool, error) {
		if fail {
			return false, &ExitError{Code: ExitUnreachable, Err: io.ErrUnexpectedEOF}
		}
		got = append(got, lines...)
		return false, nil
	}}
	out := log.output()
	_, _ = fmt.Fprint(out, "a\nb\n") // it takes everything
	if _, sent := log.flush(); sent {
		t.Error("it was sent")
	}
	for i := range 3000 {
		_, _ = fmt.Fprintln(out, i) // likewise
	}
	fail = false
	if _, sent := log.flush(); !sent {
		t.Error("it was not sent")
	}
	if len(got) != 2*maxLogHalf+1 || got[0] != "a" || got[1] != "b" || got[len(got)-1] != "2999" ||
		got[maxLogHalf] != "… 2004 lines are missing …" {
		t.Errorf("%d lines: %q", len(got), got)
	}
	_, _ = fmt.Fprintln(out, strings.Repeat("x", 1<<20)) // likewise
	if lines := log.take(); len(lines) != 1 || len(lines[0]) != maxLogLine {
		t.Errorf("a long line is %d lines", len(lines))
	}
}
