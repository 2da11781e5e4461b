package crossprotocol

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/operate/console"
)

// workersShown are the numbers of workers of the queue: in the core, in the API, in the metrics and on the page of the
// queue.
func (e *env) workersShown() string {
	e.t.Helper()
	get := func(h http.Handler, path string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		return w.Body.String()
	}
	between := func(text, from, to string) string {
		_, rest, _ := strings.Cut(text, from)
		number, _, _ := strings.Cut(rest, to)
		return strings.TrimSpace(number)
	}
	e.api() // makes the document
	pages, err := console.New(console.Options{
		Port: e.port(), Now: func() time.Time { return e.workq.Clock.Now().Time() },
		Failed: func(page string, err error) { e.t.Error(page, err) },
	})
	if err != nil {
		e.t.Fatal(err)
	}
	mux := http.NewServeMux()
	for pattern, h := range pages.Routes() {
		mux.Handle(pattern, h)
	}
	return fmt.Sprint(
		e.do(&core.InspectQueue{Queue: queue}).Queues[0].Workers, " ",
		between(get(e.api(), "/api/v1/queues/"+queue), `"workers":`, ","), " ",
		between(get(e.api(), "/metrics"), `broker_queue_workers{queue="`+queue+`"} `, "\n"), " ",
		between(get(mux, "/queues/"+queue), `<h2>Who works for it</h2><span class="right">`, " "),
	)
}

func TestBusyAndWaitingWorkersOfEveryProtocolCountEverywhere(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	want := func(n int) {
		t.Helper()
		if got, all := e.workersShown(), fmt.Sprintf("%[1]d %[1]d %[1]d %[1]d", n); got != all {
			t.Errorf("core, API, metrics and page show %s workers, want %s", got, all)
		}
	}
	for range 6 {
		e.do(&core.Submit{Job: &core.Job{Queue: queue, Body: []byte("[]"), LeaseFor: time.Hour, Origin: core.Faktory}})
	}
	want(0)
	e.jobSeq = 1
	takeByGearman(e)
	takeByFaktory(e)
	takeByWorkq(e)
	takeByHTTP(e)
	want(4)
	worker := e.beanstalkOf().Dial("worker")
	worker.Send("watch " + queue + "\r\nignore default\r\nreserve\r\n")
	worker.ReadUntil("RESERVED ")
	want(5)
	var received struct{ Messages []any }
	e.openSQS().call("ReceiveMessage", `"MaxNumberOfMessages":1`, &received)
	if len(received.Messages) != 1 {
		t.Fatal(received)
	}
	want(6)
	for _, wid := range []string{"worker-2", "worker-3"} { // they wait
		e.dialFaktory(wid).Send("FETCH " + queue + "\r\n")
	}
	want(8)
	worker.Hangup()
	want(7)
	e.advance(3 * time.Second) // FETCH waits for two seconds
	want(7)
	e.advance(70 * time.Second) // one of the waiting workers has not come back
	want(6)
}
