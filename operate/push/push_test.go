package push_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/operate/push"
)

func TestJobIsAPostRequestWithHeadersAndSignature(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.target.Secret, f.target.Headers = "s3cret", map[string]string{
		"Authorization": "Bearer x", "Host": "shop.example.com",
	}
	f.push()
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	seq := f.submit(core.Job{
		ID: "job 1%\r\n", Type: "größe", Body: []byte(`[1,"a"]`), Format: core.Args, Trace: trace + " a=b",
	})
	r := f.next()
	for name, want := range map[string]string{
		"Broker-Job-Id": "job%201%25%0D%0A", "Broker-Queue": queue, "Broker-Type": "gr%C3%B6%C3%9Fe",
		"Broker-Attempt": "1",
		"Content-Type":   "application/json", "User-Agent": "broker/1.0", "Authorization": "Bearer x",
		"traceparent": trace, "tracestate": "a=b",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if r.Method != http.MethodPost || r.URL.Path != "/jobs" || r.Host != "shop.example.com" ||
		string(r.body) != `[1,"a"]` {
		t.Errorf("%s %s at %s with body %s", r.Method, r.URL, r.Host, r.body)
	}
	at, sum, ok := strings.Cut(strings.TrimPrefix(r.Header.Get("Broker-Signature"), "t="), ",v1=")
	mac := hmac.New(sha256.New, []byte("s3cret"))
	_, _ = fmt.Fprintf(mac, "%s.%s", at, r.body) // a hash takes all
	if want := hex.EncodeToString(mac.Sum(nil)); !ok || sum != want {
		t.Errorf("signature %q, want v1=%s", r.Header.Get("Broker-Signature"), want)
	}
	if unix, err := strconv.ParseInt(at, 10, 64); err != nil ||
		f.broker.Now().Sub(core.InstantOf(time.Unix(unix, 0))).Abs() > time.Minute {
		t.Errorf("signed at %q", at)
	}
	held := f.job(seq)
	if rest := held.LeaseUntil.Sub(held.LeasedAt); held.Worker != "push:shop" || rest != patience+10*time.Second {
		t.Errorf("leased by %q for %v", held.Worker, rest)
	}
	r.reply(http.StatusCreated, "ok")
	if j := f.awaitState(seq, core.Done); j.Outcome == nil || string(j.Outcome.Result) != "ok" {
		t.Errorf("outcome %+v", j.Outcome)
	}
	s := f.counts(push.Done, 1)
	if s.LastError != "" || s.Worker() != "push:shop" {
		t.Errorf("status %+v", s)
	}
}

func TestBodyHasTheContentTypeOfItsFormat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		job     core.Job
		headers map[string]string
		want    string
	}{
		"array": {core.Job{Body: []byte("[]"), Format: core.Args}, nil, "application/json"},
		"text":  {core.Job{Body: []byte("größe")}, nil, "text/plain; charset=utf-8"},
		"empty": {core.Job{}, nil, "text/plain; charset=utf-8"},
		"bytes": {core.Job{Body: []byte{0xff, 0}}, nil, "application/octet-stream"},
		"own header": {
			core.Job{Body: []byte("{}")}, map[string]string{"Content-Type": "application/json"}, "application/json",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.target.Headers = c.headers
			f.push()
			f.submit(c.job)
			r := f.next()
			if got := r.Header.Get("Content-Type"); got != c.want || string(r.body) != string(c.job.Body) {
				t.Errorf("%q with body %q, want %q", got, r.body, c.want)
			}
			if got := r.Header.Get("Broker-Signature"); got != "" {
				t.Errorf("signed without a secret: %q", got)
			}
			r.reply(http.StatusNoContent, "")
			f.counts(push.Done, 1)
		})
	}
}

func TestAnswerThatIsNotASuccessFailsTheJob(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	for name, c := range map[string]struct {
		status  int
		body    string
		headers []string
		class   string
		message string
	}{
		"error":                 {500, "no such user\n", nil, "HTTP 500", "no such user"},
		"error without a body":  {404, "", nil, "HTTP 404", "404 Not Found"},
		"long body":             {400, long, nil, "HTTP 400", long[:1024]},
		"body that is not text": {400, "a\xffb", nil, "HTTP 400", "a\uFFFDb"},
		"redirect": {
			302, "", []string{"Location", "/elsewhere"}, "HTTP 302", "302 Found: redirects are not followed",
		},
		"busy without Retry-After":  {503, "", nil, "HTTP 503", "503 Service Unavailable"},
		"Retry-After is not a time": {429, "", []string{"Retry-After", "soon"}, "HTTP 429", "429 Too Many Requests"},
		"Retry-After of an error":   {500, "", []string{"Retry-After", "1"}, "HTTP 500", "500 Internal Server Error"},
		"result too large": {
			200, strings.Repeat("x", 1<<20+1), nil, "ResultTooLarge",
			"the body of the answer is larger than 1048576 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.push()
			seq := f.submit(core.Job{MaxFails: 1})
			f.next().reply(c.status, c.body, c.headers...)
			j := f.awaitState(seq, core.Dead)
			if j.Failure == nil || j.Failure.Type != c.class || j.Failure.Message != c.message {
				t.Errorf("failure %+v", j.Failure)
			}
			f.quiet(50 * time.Millisecond) // the redirect was not followed
			if s := f.counts(push.Failed, 1); s.LastError != c.class+": "+c.message || s.LastErrorAt == 0 {
				t.Errorf("last error %q", s.LastError)
			}
		})
	}
}

func TestFailedJobIsPushedAgainAsItsPolicySays(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.push()
	seq := f.submit(core.Job{MaxFails: 2})
	f.next().reply(http.StatusInternalServerError, "first")
	r := f.next()
	if got := r.Header.Get("Broker-Attempt"); got != "2" {
		t.Errorf("attempt %q, want 2", got)
	}
	r.reply(http.StatusInternalServerError, "second")
	if j := f.awaitState(seq, core.Dead); j.Fails != 2 || j.Attempts != 2 {
		t.Errorf("%d failures, %d attempts", j.Fails, j.Attempts)
	}
}

func TestRetryAfterDefersTheJobWithoutAFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		after  func(now core.Instant) string
	}{
		"429 with seconds": {429, func(core.Instant) string { return "3600" }},
		"503 with a date": {503, func(now core.Instant) string {
			return now.Add(time.Hour).Time().Format(http.TimeFormat)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.push()
			seq, answered := f.submit(core.Job{MaxFails: 1, MaxAttempts: 1}), f.broker.Now()
			f.next().reply(c.status, "busy", "Retry-After", c.after(answered))
			j := f.awaitState(seq, core.Scheduled)
			if j.Fails != 0 || j.Attempts != 0 || j.Failure != nil {
				t.Errorf("%d failures, %d attempts, failure %+v", j.Fails, j.Attempts, j.Failure)
			}
			if wait := j.ReadyAt.Sub(answered); wait < time.Hour-2*time.Second {
				t.Errorf("deferred by %v", wait)
			}
			f.submit(core.Job{})
			if s := f.counts(push.Deferred, 1); s.PausedUntil == 0 {
				t.Error("the target goes on")
			}
			f.quiet(50 * time.Millisecond) // the other job waits too, because the receiver asked for a pause
		})
	}
}

func TestDeferredJobIsPushedAgain(t *testing.T) {
	t.Parallel()
	for after, least := range map[string]time.Duration{"2": 2 * time.Second, "0": time.Second} {
		t.Run(after, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.push()
			seq := f.submit(core.Job{MaxFails: 1, MaxAttempts: 1})
			first := f.next()
			answered := f.broker.Now()
			first.reply(http.StatusTooManyRequests, "busy", "Retry-After", after)
			f.counts(push.Deferred, 1)
			other := f.submit(core.Job{})
			f.next().reply(http.StatusOK, "")
			if took := f.broker.Now().Sub(answered); took < least-50*time.Millisecond {
				t.Errorf("pushed again after %v", took)
			}
			f.next().reply(http.StatusOK, "")
			if j := f.awaitState(seq, core.Done); j.Fails != 0 || j.Attempts != 1 {
				t.Errorf("%d failures, %d attempts", j.Fails, j.Attempts)
			}
			f.awaitState(other, core.Done)
		})
	}
}

func TestReceiverThatDoesNotAnswerInTimeFailsTheJob(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.target.Timeout = 100 * time.Millisecond
	f.push()
	seq := f.submit(core.Job{MaxFails: 1})
	// A busy machine may not connect in this time: then the job is pushed again.
	if j := f.awaitState(seq, core.Dead); j.Failure.Type != "Timeout" || j.Failure.Message != "no answer within 100ms" {
		t.Errorf("failure %+v", j.Failure)
	}
}

func TestConnectionThatBreaksFailsTheJob(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.push()
	seq := f.submit(core.Job{MaxFails: 1})
	f.next()
	f.receiver.CloseClientConnections()
	if j := f.awaitState(seq, core.Dead); j.Failure.Type != "ConnectionLost" ||
		strings.Contains(j.Failure.Message, f.receiver.URL) {
		t.Errorf("failure %+v", j.Failure)
	}
}

func TestAnswerAfterTheEndOfTheLeaseIsLate(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.push()
	seq := f.submit(core.Job{})
	r := f.next()
	core.DoOnce(f.broker, core.HTTP, &core.Cancel{Ref: core.Ref{Seq: seq}})
	r.reply(http.StatusOK, "")
	if s := f.counts(push.Late, 1); s.LastError == "" {
		t.Error("a late answer leaves no trace")
	}
}

func TestReceiverThatCannotBeReachedCostsNoAttempt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_ = f.receiver.Listener.Close()    // it has accepted nothing
	closed := listen(t, "127.0.0.2:0") // nobody else takes a port of this address
	address := closed.Addr().String()
	_ = closed.Close() // likewise
	f.target.URL = "http://" + address
	f.push()
	seq := f.submit(core.Job{MaxFails: 1, MaxAttempts: 1})
	select {
	case err := <-f.failed:
		if err == nil || strings.Contains(err.Error(), "Post") {
			t.Errorf("failed: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("nobody is told that the receiver cannot be reached")
	}
	if s := f.counts(push.Unreachable, 1); s.LastError == "" {
		t.Errorf("status %+v", s)
	}
	for f.pusher.Status()[0].PausedUntil == 0 { // the pauses between its tries become longer
		<-time.After(time.Millisecond)
	}
	if j := f.awaitState(seq, core.Ready); j.Attempts != 0 || j.Fails != 0 {
		t.Errorf("the job has %d attempts and %d failures", j.Attempts, j.Fails)
	}
	f.receiver.Listener = listen(t, address)
	f.receiver.Start()
	f.next().reply(http.StatusOK, "")
	f.awaitState(seq, core.Done)
	if err := <-f.failed; err != nil {
		t.Errorf("failed again: %v", err)
	}
}

func TestConcurrencyBoundsTheRequestsAtTheSameTime(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.target.Concurrency = 3
	f.push()
	for range 7 {
		f.submit(core.Job{})
	}
	first := []request{f.next(), f.next(), f.next()}
	f.quiet(100 * time.Millisecond)
	if s := f.pusher.Status()[0]; s.InFlight != 3 {
		t.Errorf("%d in flight", s.InFlight)
	}
	first[1].reply(http.StatusOK, "")
	fourth := f.next()
	f.quiet(100 * time.Millisecond)
	for _, r := range []request{first[0], first[2], fourth} {
		r.reply(http.StatusOK, "")
	}
	for range 3 {
		f.next().reply(http.StatusOK, "")
	}
	f.counts(push.Done, 7)
}

func TestRateBoundsTheRequestsInASecond(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.target.Concurrency, f.target.Rate = 100, 20
	started := f.broker.Now()
	f.push()
	for range 12 {
		f.submit(core.Job{})
	}
	for range 12 {
		f.next().reply(http.StatusOK, "")
	}
	if took := f.broker.Now().Sub(started); took < 450*time.Millisecond { // two may come at once after a pause
		t.Errorf("12 jobs were pushed in %v", took)
	}
}

func TestQueuesAreEmptiedInTheirOrder(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.target.Queues = []string{"urgent", queue}
	f.submit(core.Job{})
	f.submit(core.Job{Queue: "urgent"})
	f.push()
	for _, want := range []string{"urgent", queue} {
		r := f.next()
		if got := r.Header.Get("Broker-Queue"); got != want {
			t.Errorf("job of %q, want %q", got, want)
		}
		r.reply(http.StatusOK, "")
	}
}

func TestTLSNeedsACertificateOfTheCA(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.receiver.StartTLS()
	f.target.URL = f.receiver.URL
	f.push()
	seq := f.submit(core.Job{})
	if s := f.counts(push.Unreachable, 1); !strings.Contains(s.LastError, "certificate") {
		t.Errorf("last error %q", s.LastError)
	}
	f.target.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.receiver.Certificate().Raw})
	f.push()
	f.next().reply(http.StatusOK, "")
	f.awaitState(seq, core.Done)
	if s := f.counts(push.Done, 1); s.Counts[push.Unreachable] == 0 {
		t.Error("the counts did not outlive the change of the target")
	}
}

func TestHTTPLeadsToThisHostOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.target.URL = "http://192.0.2.1:1/"
	f.push()
	seq := f.submit(core.Job{})
	if s := f.counts(push.Unreachable, 1); !strings.Contains(s.LastError, "use https") {
		t.Errorf("last error %q", s.LastError)
	}
	f.awaitState(seq, core.Ready)
	f.target.URL = "ftp://192.0.2.1/"
	if err := f.pusher.Set([]push.Target{f.target}); err == nil {
		t.Error("ftp is accepted")
	}
	f.target.URL, f.target.CA = "https://localhost", []byte("no certificate")
	if err := f.pusher.Set([]push.Target{f.target}); err == nil {
		t.Error("a CA without a certificate is accepted")
	}
}

func TestRemovedTargetTakesNoMoreJobsAndItsAnswersCount(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.push()
	first := f.submit(core.Job{})
	r := f.next()
	if err := f.pusher.Set(nil); err != nil {
		t.Fatal(err)
	}
	second := f.submit(core.Job{})
	r.reply(http.StatusOK, "")
	f.awaitState(first, core.Done)
	f.quiet(50 * time.Millisecond)
	if j := f.job(second); j.State != core.Ready {
		t.Errorf("the second job is %v", j.State)
	}
}

func TestCloseWaitsForAnswersAndLeavesTheLeasesOfTheOthers(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.target.Concurrency = 2
	f.push()
	answered, silent := f.submit(core.Job{}), f.submit(core.Job{})
	replies := map[string]request{}
	for range 2 {
		r := f.next()
		replies[r.Header.Get("Broker-Job-Id")] = r
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	closed := make(chan struct{})
	go func() {
		f.pusher.Close(ctx)
		close(closed)
	}()
	for len(f.pusher.Status()) > 0 { // until Close has begun
		<-time.After(time.Millisecond)
	}
	third := f.submit(core.Job{})
	j := f.job(answered)
	replies[j.Job.Identity()].reply(http.StatusOK, "")
	f.awaitState(answered, core.Done)
	cancel()
	<-closed
	if j := f.job(answered); j.State != core.Done {
		t.Errorf("the job that was answered is %v", j.State)
	}
	if j := f.job(silent); j.State != core.Leased || j.Attempts != 1 || j.Worker != "push:shop" {
		t.Errorf("the job that was not answered is %v, %d attempts, worker %q", j.State, j.Attempts, j.Worker)
	}
	if j := f.job(third); j.State != core.Ready {
		t.Errorf("the third job is %v", j.State)
	}
}
