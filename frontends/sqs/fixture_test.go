package sqs

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
)

// fixture is a front-end on a real engine with a memory disk and a clock that the test moves.
type fixture struct {
	*Frontend
	t       testing.TB
	clock   *coretest.Clock
	engine  *engine.Engine
	options engine.Options
	opts    Options

	control  *access.Control
	fallback string // the principal of requests without credentials
}

func setup(t testing.TB, set ...func(*Options)) *fixture {
	t.Helper()
	return setupFor(t, &access.Control{}, "", set...)
}

// setupFor is setup with principals. fallback is the one of requests without credentials.
func setupFor(t testing.TB, control *access.Control, fallback string, set ...func(*Options)) *fixture {
	t.Helper()
	f := &fixture{
		t: t, clock: coretest.NewClock(), control: control, fallback: fallback,
		opts: Options{Account: "000000000000", Region: "us-east-1", MaxInFlight: 1000},
	}
	for _, s := range set {
		s(&f.opts)
	}
	f.options = engine.Options{
		Dir: "data", FS: coretest.MemoryFS(), Durability: engine.Sync, Clock: f.clock, Seed: 1, ManualTimers: true,
	}
	f.start()
	t.Cleanup(f.shutDown)
	return f
}

func (f *fixture) start() {
	f.t.Helper()
	e, err := engine.Open(f.options)
	if err != nil {
		f.t.Fatal(err)
	}
	f.engine = e
	f.Frontend = New(access.NewGuard(e, f.control, core.SQS, f.fallback), f.opts)
	if err := f.Start(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) shutDown() {
	f.Close()
	if err := f.engine.Shutdown(); err != nil {
		f.t.Error(err)
	}
}

// restart opens the broker again on the same disk.
func (f *fixture) restart() {
	f.t.Helper()
	f.shutDown()
	f.start()
}

// advance moves the clock and runs due timers.
func (f *fixture) advance(d time.Duration) {
	f.clock.Advance(d)
	f.engine.Tick()
}

// object is a value of JSON.
type object = map[string]any

// post sends a request in AWS JSON and returns the status, the headers and the reply.
func (f *fixture) post(ctx context.Context, action string, in object) (int, http.Header, object) {
	f.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		f.t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "http://queues.test/", bytes.NewReader(body)).WithContext(ctx)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0; charset=utf-8")
	r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	return f.exchange(r)
}

// postRaw is post with a raw body.
func (f *fixture) postRaw(action, body string) (int, http.Header, object) {
	f.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://queues.test/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	return f.exchange(r)
}

func (f *fixture) exchange(r *http.Request) (int, http.Header, object) {
	f.t.Helper()
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	out := object{}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		f.t.Fatalf("reply %q: %v", w.Body, err)
	}
	return w.Code, w.Header(), out
}

// do is post for a request that must succeed.
func (f *fixture) do(action string, in object) object {
	f.t.Helper()
	status, _, out := f.post(context.Background(), action, in)
	if status != http.StatusOK {
		f.t.Fatalf("%s %v: %d %v", action, in, status, out)
	}
	return out
}

// query sends a form and returns the status, the headers and the reply in XML.
func (f *fixture) query(path string, pairs ...string) (int, http.Header, string) {
	f.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, "http://queues.test"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", formType)
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Code, w.Header(), w.Body.String()
}

// create makes a queue. more are its attributes in pairs.
func (f *fixture) create(name string, more ...string) string {
	f.t.Helper()
	attributes := object{}
	for i := 0; i < len(more); i += 2 {
		attributes[more[i]] = more[i+1]
	}
	return f.do("CreateQueue", object{"QueueName": name, "Attributes": attributes})["QueueUrl"].(string)
}

// send sends a message. more are additional parameters in pairs.
func (f *fixture) send(queue, body string, more ...any) object {
	f.t.Helper()
	in := object{"QueueUrl": queue, "MessageBody": body}
	for i := 0; i < len(more); i += 2 {
		in[more[i].(string)] = more[i+1]
	}
	return f.do("SendMessage", in)
}

// receive receives up to ten messages with all attributes.
func (f *fixture) receive(queue string, more ...any) (messages []object) {
	f.t.Helper()
	in := object{
		"QueueUrl": queue, "MaxNumberOfMessages": 10, "AttributeNames": []string{"All"},
		"MessageAttributeNames": []string{"All"},
	}
	for i := 0; i < len(more); i += 2 {
		in[more[i].(string)] = more[i+1]
	}
	list, _ := f.do("ReceiveMessage", in)["Messages"].([]any)
	for _, m := range list {
		messages = append(messages, m.(object))
	}
	return messages
}

// bodies joins the bodies of received messages with spaces.
func bodies(messages []object) string {
	var all []string
	for _, m := range messages {
		all = append(all, m["Body"].(string))
	}
	return strings.Join(all, " ")
}

// attributesOf returns attributes of a queue.
func (f *fixture) attributesOf(queue string) object {
	f.t.Helper()
	all, _ := f.do("GetQueueAttributes",
		object{"QueueUrl": queue, "AttributeNames": []string{"All"}})["Attributes"].(object)
	return all
}

// want reports a difference.
func want(t testing.TB, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
