package push_test

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/operate/push"
)

// patience is the timeout of a test.
const patience = 2 * time.Minute

const queue = "mail"

// fixture is a broker in memory with a receiver.
type fixture struct {
	t        *testing.T
	broker   *engine.Engine
	pusher   *push.Pusher
	receiver *httptest.Server
	requests chan request
	failed   chan error
	target   push.Target
}

// request is a request that has arrived at the receiver.
type request struct {
	*http.Request
	body  []byte
	reply func(status int, body string, headers ...string)
}

// setup starts a broker and a receiver. The test provides the replies.
func setup(t *testing.T) *fixture {
	f := newFixture(t)
	f.receiver.Start()
	f.target.URL = f.receiver.URL + "/jobs"
	return f
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	e, err := engine.Open(engine.Options{Dir: "store", FS: coretest.MemoryFS()})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		t: t, broker: e, requests: make(chan request, 100), failed: make(chan error, 100),
		target: push.Target{Name: "shop", Queues: []string{queue}, Concurrency: 1, Timeout: patience},
	}
	f.receiver = httptest.NewUnstartedServer(http.HandlerFunc(f.receive))
	f.pusher = push.New(push.Options{Broker: e, Version: "1.0", Failed: func(_ string, err error) { f.failed <- err }})
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end()
		f.pusher.Close(ended)
		f.receiver.CloseClientConnections()
		f.receiver.Close()
		if err := e.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// receive hands a request to the test and waits for its reply.
func (f *fixture) receive(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // the client may have gone
	replied := make(chan struct{})
	f.requests <- request{r, body, func(status int, body string, headers ...string) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may have gone
		close(replied)
	}}
	select {
	case <-replied:
	case <-r.Context().Done():
	}
}

// push starts to push to the target.
func (f *fixture) push() {
	f.t.Helper()
	if err := f.pusher.Set([]push.Target{f.target}); err != nil {
		f.t.Fatal(err)
	}
}

// submit submits a job and returns its number.
func (f *fixture) submit(job core.Job) uint64 {
	f.t.Helper()
	job.Origin, job.Queue, job.MaxFails, job.Exhausted = core.HTTP, cmp.Or(job.Queue,
		queue), cmp.Or(job.MaxFails, 3), core.ExhaustedBury
	job.RetainFor = time.Hour
	r := core.DoOnce(f.broker, core.HTTP, &core.Submit{Job: &job})[0]
	if r.Kind != core.Submitted {
		f.t.Fatalf("submit: %+v", r)
	}
	return r.Seq
}

// next is the next request.
func (f *fixture) next() request {
	f.t.Helper()
	select {
	case r := <-f.requests:
		return r
	case <-time.After(patience):
		f.t.Fatal("no request")
		panic("unreachable")
	}
}

// quiet checks that no request arrives for a while.
func (f *fixture) quiet(d time.Duration) {
	f.t.Helper()
	select {
	case r := <-f.requests:
		f.t.Fatalf("request for job %s", r.Header.Get("Broker-Job-Id"))
	case <-time.After(d):
	}
}

func (f *fixture) job(seq uint64) core.JobInfo {
	f.t.Helper()
	r := core.DoOnce(f.broker, core.HTTP, &core.Inspect{Ref: core.Ref{Seq: seq}})[0]
	if r.Info == nil {
		f.t.Fatalf("inspect: %+v", r)
	}
	return *r.Info
}

// await waits until a job has the wanted state.
func (f *fixture) await(seq uint64, what string, is func(j *core.JobInfo) bool) core.JobInfo {
	f.t.Helper()
	end := time.After(patience)
	for {
		j := f.job(seq)
		if is(&j) {
			return j
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-end:
			f.t.Fatalf("the job is not %s: %+v, failure %+v", what, j, j.Failure)
		}
	}
}

func (f *fixture) awaitState(seq uint64, state core.State) core.JobInfo {
	f.t.Helper()
	return f.await(seq, state.String(), func(j *core.JobInfo) bool { return j.State == state })
}

// counts waits until an outcome was counted n times or, as what is tried again, more often.
func (f *fixture) counts(o push.Outcome, n uint64) push.Status {
	f.t.Helper()
	end := time.After(patience)
	for {
		s := f.pusher.Status()[0]
		if s.Counts[o] >= n && s.InFlight == 0 {
			return s
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-end:
			f.t.Fatalf("%v is not %d: %+v", o, n, s)
		}
	}
}

// listen binds an address again.
func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
