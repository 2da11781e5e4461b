package sqs

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"broker/access"
)

const (
	exampleKey    = "AKIDEXAMPLE"
	exampleSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
)

var exampleTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// The signatures were made by botocore 1.29 at 2026-01-02T03:04:05Z.
func exampleRequest() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://queues.test/000000000000/my%20q?b=2&a=x%20y",
		strings.NewReader("Action=ListQueues"))
	r.Header.Set("Content-Type", formType)
	r.Header.Set("X-Amz-Meta", "  a   b ")
	r.Header.Set("X-Amz-Date", "20260102T030405Z")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102/eu-central-1/sqs/aws4_request, "+
		"SignedHeaders=content-type;host;x-amz-date;x-amz-meta, Signature=43c55a348706b98de07c49306d51b035155776cf5a4e073009f443e705d96848")
	return r
}

func examplePresigned() *http.Request {
	return httptest.NewRequest(http.MethodGet,
		"http://queues.test/000000000000/q?Action=DeleteMessage&ReceiptHandle=a%2Bb%2F%3D&"+
			"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20260102%2Feu-central-1%2Fsqs%2Faws4_request&X-Amz-Date=20260102T030405Z&"+
			"X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=53bf673150fdc1b073a78c8528c0a55e187ed3ebbbdf5043fd1e6352c54b7245", nil)
}

func TestSignaturesOfOtherPrograms(t *testing.T) {
	t.Parallel()
	at := exampleTime
	for _, c := range []struct {
		name    string
		request func() *http.Request
		body    string
		secret  string
		now     time.Time
		ok      bool
	}{
		{"header", exampleRequest, "Action=ListQueues", exampleSecret, at, true},
		{
			"header, a quarter of an hour later", exampleRequest, "Action=ListQueues", exampleSecret, at.Add(maxSkew),
			true,
		},
		{"header, too late", exampleRequest, "Action=ListQueues", exampleSecret, at.Add(maxSkew + time.Second), false},
		{
			"header, too early", exampleRequest, "Action=ListQueues", exampleSecret, at.Add(-maxSkew - time.Second),
			false,
		},
		{"another body", exampleRequest, "Action=PurgeQueue", exampleSecret, at, false},
		{"another secret", exampleRequest, "Action=ListQueues", "other", at, false},
		{"another host", func() *http.Request {
			r := exampleRequest()
			r.Host = "evil.test"
			return r
		}, "Action=ListQueues", exampleSecret, at, false},
		{"another path", func() *http.Request {
			r := exampleRequest()
			r.URL.Path = "/x"
			r.URL.RawPath = ""
			return r
		}, "Action=ListQueues", exampleSecret, at, false},
		{"presigned", examplePresigned, "", exampleSecret, at.Add(time.Minute), true},
		{"presigned, expired", examplePresigned, "", exampleSecret, at.Add(time.Minute + time.Second), false},
	} {
		r := c.request()
		s, err := readSignature(r)
		if err != nil || s == nil || s.key != exampleKey {
			t.Fatalf("%s: %+v, %v", c.name, s, err)
		}
		err = s.checkScope(r, c.now)
		if err == nil {
			err = s.check(r, []byte(c.body), c.secret)
		}
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestRequestsMustBeSignedIfKeysAreConfigured(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	control.Load([]access.Entry{{
		Name: "shop", SQSAccessKey: exampleKey, SQSSecretKey: exampleSecret,
		Grants: []access.Grant{{Role: access.Produce, Queues: []string{"orders"}}},
	}})
	f := setupFor(t, control, "")
	f.clock.Advance(exampleTime.Sub(f.clock.Now().Time()))
	for _, c := range []struct {
		name    string
		request func() *http.Request
		kind    *errorKind
	}{
		{"none", func() *http.Request { r := exampleRequest(); r.Header.Del("Authorization"); return r }, missingToken},
		{"unknown", func() *http.Request {
			r := exampleRequest()
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), exampleKey, "AKIDOTHER", 1))
			return r
		}, unknownKey},
		{"wrong", func() *http.Request {
			r := exampleRequest()
			r.Header.Set("X-Amz-Meta", "c")
			return r
		}, wrongSignature},
		{"another algorithm", func() *http.Request {
			r := exampleRequest()
			r.Header.Set("Authorization", "AWS4-ECDSA x")
			return r
		}, incomplete},
		{"incomplete", func() *http.Request {
			r := exampleRequest()
			r.Header.Set("Authorization", signAlgorithm+" Credential=a/b/c")
			return r
		}, incomplete},
		{"no right", examplePresigned, accessDenied},
		{"a page of a web site", func() *http.Request {
			r := exampleRequest()
			r.Header.Set("Origin", "http://evil.test")
			return r
		}, accessDenied},
	} {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, c.request())
		want(t, c.name+": status", w.Code, 403)
		want(t, c.name+": code", w.Header().Get("X-Amzn-Query-Error"), c.kind.code+";Sender")
	}
	if n := control.Refusals(8); n == 0 {
		t.Error("no refusal was counted")
	}
}

// Audit panics in this test. The client gets a generic error, and Panicked gets the details.
func TestPanicFailsOneRequestOnly(t *testing.T) {
	t.Parallel()
	var told any
	f := setup(t, func(o *Options) {
		o.Audit = func(access.Change) { panic("detail") }
		o.Panicked = func(value any, _ []byte) { told = value }
	})
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"QueueName": "q"}`))
	r.Header.Set("X-Amz-Target", "AmazonSQS.CreateQueue")
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	f.ServeHTTP(w, r)
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "detail") || told != "detail" {
		t.Errorf("status %d, %s, the program was told %v", w.Code, w.Body, told)
	}
}
