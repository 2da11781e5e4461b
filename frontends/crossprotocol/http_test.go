package crossprotocol

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"broker/core"
	"broker/operate/httpapi"
	"broker/operate/service"
)

// inBubble runs a cell in a synctest bubble, because waiting requests have their own goroutines. e.settle returns once
// all of them wait.
func inBubble(t *testing.T, run func(*testing.T) string) (text string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { text = run(t) })
	return text
}

// noParts are the parts of a process without any.
type noParts struct{ httpapi.Parts }

func (noParts) SyncLatency() (none core.Latency)            { return none }
func (noParts) SpanCounts() (sent, dropped uint64, on bool) { return 0, 0, false }
func (noParts) Connections() map[string]service.Connections { return nil }
func (noParts) PushTargets() []service.PushTarget           { return nil }
func (noParts) SQSActions() []httpapi.SQSAction             { return nil }
func (noParts) ArchiveStatus() *core.Archive                { return nil }

// api is the HTTP API on the broker.
func (e *env) api() http.Handler {
	e.t.Helper()
	if e.handler == nil {
		e.handler = e.port().HTTP().Handler
	}
	return e.handler
}

// port is the HTTP port on the broker.
func (e *env) port() *httpapi.Server {
	e.t.Helper()
	if e.http != nil {
		return e.http
	}
	s, err := service.New(service.Options{Broker: e.workq.Broker, Handles: core.NewHandleFormat("H:host")})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(s.Close)
	server := httpapi.New(httpapi.Options{Now: e.workq.Clock.Now})
	server.Ready(httpapi.Backend{
		Broker: e.workq.Broker, Service: s, Parts: noParts{},
	})
	e.http = server
	return server
}

// ask sends a request to the API.
func (e *env) ask(ctx context.Context, method, path, body string) httpAnswer {
	w := httptest.NewRecorder()
	e.api().ServeHTTP(w,
		httptest.NewRequestWithContext(ctx, method, "http://localhost/api/v1"+path, strings.NewReader(body)))
	a, err := readAnswer(w.Code, w.Body.Bytes())
	if err != nil {
		e.t.Errorf("%s %s: %v", method, path, err)
	}
	return a
}

// httpJob is the body of a submission.
func httpJob(o jobTimes, more string) string {
	return fmt.Sprintf(`{"id":%q,"queue":%q,"body":"hi","lease_for_s":%g,"expires_in_s":%g,"retain_for_s":3600%s}`,
		id, queue, o.ttr.Seconds(), o.ttl.Seconds(), more)
}

// httpSubmit submits a job. Its client reads the job later.
func httpSubmit(scheduled bool) func(e *env, o jobTimes) func() string {
	return func(e *env, o jobTimes) func() string {
		more := ""
		if scheduled {
			more = fmt.Sprintf(`,"delay_s":%g`, delay.Seconds())
		}
		if a := e.ask(e.t.Context(), "POST", "/jobs", httpJob(o, more)); a.Status != http.StatusCreated {
			e.t.Fatal(a)
		}
		return func() string { return "GET: " + e.ask(e.t.Context(), "GET", "/jobs/"+id, "").String() }
	}
}

// httpWait submits a job whose client waits for the outcome.
func httpWait(ephemeral bool) func(e *env, o jobTimes) func() string {
	return func(e *env, o jobTimes) func() string {
		e.api()
		ctx, cancel := context.WithCancel(e.t.Context())
		answer, ended := make(chan httpAnswer, 1), make(chan struct{})
		go func() { // the cleanup waits for it
			defer close(ended)
			answer <- e.ask(ctx, "POST", "/jobs?wait=10m", httpJob(o, fmt.Sprintf(`,"ephemeral":%v`, ephemeral)))
		}()
		e.t.Cleanup(func() {
			cancel()
			<-ended
		})
		synctest.Wait()
		return func() string {
			synctest.Wait()
			select {
			case a := <-answer:
				return "answer: " + a.String()
			default:
				return "waits on"
			}
		}
	}
}

func takeByHTTP(e *env) *worker {
	l := e.ask(e.t.Context(), "POST", "/queues/"+queue+"/lease", "{}")
	if l.Status == http.StatusNoContent {
		return nil
	}
	return &worker{finish: func(ok bool) string {
		verb, body := "complete", `{"result":"done"}`
		if !ok {
			verb, body = "fail", `{"error_class":"Broken","message":"no way"}`
		}
		return e.ask(e.t.Context(), "POST", "/leases/"+l.Lease+"/"+verb, body).String()
	}}
}

// HTTP clients wait for at most ten minutes, so their jobs have shorter times.
var httpTimes = jobTimes{ttr: 5 * time.Minute, ttl: ttl}

// httpMortal are the times of a job that expires while a worker has it and a client waits.
var httpMortal = jobTimes{ttr: 8 * time.Minute, ttl: 5 * time.Minute}
