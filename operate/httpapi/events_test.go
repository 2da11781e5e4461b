package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// eventStream is an open stream of server-sent events.
type eventStream struct {
	t     *testing.T
	lines *bufio.Scanner
	close func()
}

// sentEvent is one event.
type sentEvent struct {
	id, name string
	data     map[string]any
}

func (f *apiFixture) listen(query, lastID string) *eventStream {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	req, err := http.NewRequestWithContext(ctx, "GET", f.url+"/api/v1/events"+query, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	if ct := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || ct != "text/event-stream" {
		f.t.Fatalf("%d, content type %q", resp.StatusCode, ct)
	}
	s := &eventStream{t: f.t, lines: bufio.NewScanner(resp.Body), close: func() {
		cancel()
		_ = resp.Body.Close() // its end does not matter
	}}
	f.t.Cleanup(s.close)
	return s
}

// next reads the next event.
func (s *eventStream) next() (e sentEvent) {
	s.t.Helper()
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.data); err != nil {
				s.t.Fatal(err)
			}
		case "":
			if e.name != "" {
				return e
			}
		}
	}
	s.t.Fatal("the stream has ended: ", s.lines.Err())
	return e
}

// firstID is the id at the start of the stream, before any event.
func (s *eventStream) firstID() string {
	s.t.Helper()
	for s.lines.Scan() {
		if id, ok := strings.CutPrefix(s.lines.Text(), "id: "); ok {
			return id
		}
	}
	s.t.Fatal("the stream has ended: ", s.lines.Err())
	return ""
}

// want reads events of these kinds.
func (s *eventStream) want(names ...string) (last sentEvent) {
	s.t.Helper()
	for _, name := range names {
		if last = s.next(); last.name != name {
			s.t.Fatalf("%s %v, want %s", last.name, last.data, name)
		}
	}
	return last
}

func TestEventsReportTheLifeOfAJob(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	all, mail := f.listen("?kind=submitted,ready,leased&kind=done", ""), f.listen("?queue=mail&kind=submitted,done", "")
	other := f.call("POST", "/api/v1/jobs", `{"queue":"other"}`).want(201)
	f.call("POST", "/api/v1/jobs", `{"queue":"mail","type":"letter"}`).want(201)
	lease := f.call("POST", "/api/v1/queues/mail/lease", `{"worker":"w1"}`).want(200)
	f.call("POST", "/api/v1/leases/"+lease["lease"].(string)+"/complete", nil).want(204)
	e := all.want("submitted")
	if e.data["queue"] != "other" || e.data["job"] != other["id"] || e.data["protocol"] != "http" ||
		e.data["id"] != e.id {
		t.Errorf("the first event is %v", e)
	}
	all.want("ready", "submitted", "ready", "leased")
	if e := all.want("done"); e.data["type"] != "letter" || e.data["worker"] != "w1" || e.data["over"] != true {
		t.Errorf("the last event is %v", e)
	}
	mail.want("submitted", "done")
}

func TestEventsContinueAfterTheLastEventID(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	first := f.listen("?kind=submitted", "")
	f.call("POST", "/api/v1/jobs", `{"queue":"a"}`).want(201)
	last := first.want("submitted")
	first.close()
	f.call("POST", "/api/v1/jobs", `{"queue":"b"}`).want(201)
	again := f.listen("?kind=submitted", last.id)
	if e := again.want("submitted"); e.data["queue"] != "b" {
		t.Errorf("went on with %v", e.data)
	}
	stranger := f.listen("", "deadbeef-7")
	if e := stranger.want("dropped"); e.data["restarted"] != true {
		t.Errorf("an id of another run gives %v", e.data)
	}
}

func TestAListenerWithoutEventsLearnsOfARestart(t *testing.T) {
	t.Parallel()
	f, restarted := setupAPI(t, Options{}), setupAPI(t, Options{})
	first := f.listen("?kind=submitted", "")
	id := first.firstID()
	first.close()
	f.call("POST", "/api/v1/jobs", `{"queue":"meanwhile"}`).want(201)
	if e := f.listen("?kind=submitted", id).want("submitted"); e.data["queue"] != "meanwhile" {
		t.Errorf("went on with %v", e.data)
	}
	if e := restarted.listen("?kind=submitted", id).want("dropped"); e.data["restarted"] != true {
		t.Errorf("after a restart: %v", e.data)
	}
}

func TestEventsRefuseUnknownFilters(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.call("GET", "/api/v1/events?kind=nonsense", nil).problem(422, "invalid_request")
	f.call("GET", "/api/v1/events?job=none", nil).problem(404, "job_not_found")
	f.call("GET", "/api/v1/events?kinds=done", nil).problem(422, "invalid_request")
}

func TestLeaseOfSeveralQueuesTakesTheFirstThatHasAJob(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.call("POST", "/api/v1/jobs", `{"queue":"low"}`).want(201)
	f.call("POST", "/api/v1/jobs", `{"queue":"high"}`).want(201)
	for _, want := range []string{"high", "low"} {
		job := f.call("POST", "/api/v1/lease?queue=high&queue=none&queue=low", nil).want(200)["job"].(map[string]any)
		if job["queue"] != want {
			t.Errorf("leased from %v, want %s", job["queue"], want)
		}
	}
	f.call("POST", "/api/v1/lease?queue=high&queue=low", nil).want(204)
	f.call("POST", "/api/v1/lease", nil).problem(422, "invalid_request")
}
