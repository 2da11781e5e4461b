package sqs

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"broker/access"
)

// sharedConn is a connection whose client may hold some bytes.
type sharedConn struct {
	room, held int
	full       bool // its principal has its share of connections
	of         string
	idle       time.Duration // its end without a login; 0: none
}

func (c *sharedConn) Admit(p *access.Principal) error {
	if c.full {
		return &access.FullError{}
	}
	c.of = p.Name()
	return nil
}

func (c *sharedConn) Hold(n int) (release func(), ok bool) {
	if c.held+n > c.room {
		return nil, false
	}
	c.held += n
	return func() { c.held -= n }, true
}

func (c *sharedConn) Idle(most time.Duration) { c.idle = most }
func (c *sharedConn) Busy()                   {}

// serveOn serves a request on a connection.
func (f *fixture) serveOn(c *sharedConn, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), connKey{}, c)))
	return w
}

func shop(t *testing.T) *fixture {
	t.Helper()
	control := &access.Control{}
	control.Load([]access.Entry{{
		Name: "shop", SQSAccessKey: exampleKey, SQSSecretKey: exampleSecret,
		Grants: []access.Grant{{Role: access.Read}},
	}})
	f := setupFor(t, control, "")
	f.clock.Advance(exampleTime.Sub(f.clock.Now().Time()))
	return f
}

// The body is part of what is signed, so it is read before it is known who asks: as far as the client may hold bytes.
func TestOnlyABoundedPartOfABodyIsReadBeforeTheSignatureIsChecked(t *testing.T) {
	t.Parallel()
	f := shop(t)
	body := strings.NewReader(strings.Repeat("x", maxRequestBytes))
	r := exampleRequest()
	r.Body, r.ContentLength = httptest.NewRequest(http.MethodPost, "/", body).Body, maxRequestBytes
	c := &sharedConn{room: 2*bodyBlock + 1}
	w := f.serveOn(c, r)
	want(t, "status", w.Code, http.StatusServiceUnavailable)
	want(t, "bytes that were read", int(body.Size())-body.Len(), freeBody+2*bodyBlock)
	want(t, "bytes that are held afterwards", c.held, 0)
	want(t, "principal", c.of, "")
}

func TestAnOldSignatureIsRefusedBeforeTheBodyIsRead(t *testing.T) {
	t.Parallel()
	f := shop(t)
	f.clock.Advance(time.Hour)
	body := strings.NewReader("Action=ListQueues")
	r := exampleRequest()
	r.Body = httptest.NewRequest(http.MethodPost, "/", body).Body
	c := &sharedConn{}
	w := f.serveOn(c, r)
	want(t, "status", w.Code, http.StatusForbidden)
	want(t, "bytes that were not read", body.Len(), int(body.Size()))
	want(t, "Connection", w.Header().Get("Connection"), "close")
	want(t, "end of the connection", c.idle, refusedFor)
}

func TestARefusedRequestWithoutABodyKeepsItsConnection(t *testing.T) {
	t.Parallel()
	f := shop(t)
	c := &sharedConn{}
	w := f.serveOn(c, httptest.NewRequest(http.MethodGet, "http://queues.test/?Action=ListQueues", nil))
	want(t, "status", w.Code, http.StatusForbidden)
	want(t, "Connection", w.Header().Get("Connection"), "")
	want(t, "end of the connection", c.idle, time.Duration(0))
}

func TestAConnectionBelongsToThePrincipalThatSigned(t *testing.T) {
	t.Parallel()
	f := shop(t)
	c := &sharedConn{}
	want(t, "status", f.serveOn(c, exampleRequest()).Code, http.StatusBadRequest) // its path does not fit its action
	want(t, "principal", c.of, "shop")
	wrong := exampleRequest()
	wrong.Header.Set("X-Amz-Meta", "other")
	c = &sharedConn{}
	want(t, "status", f.serveOn(c, wrong).Code, http.StatusForbidden)
	want(t, "principal", c.of, "")
	want(t, "status", f.serveOn(&sharedConn{full: true}, exampleRequest()).Code, http.StatusServiceUnavailable)
}

// After too many failed logins a wrong secret is told to wait, the right one passes.
func TestFailedLoginsAreThrottled(t *testing.T) {
	t.Parallel()
	f := shop(t)
	wrong := exampleRequest()
	wrong.Header.Set("X-Amz-Meta", "other")
	unknown := exampleRequest()
	unknown.Header.Set("Authorization",
		strings.Replace(unknown.Header.Get("Authorization"), exampleKey, "AKIDUNKNOWN", 1))
	for i := range access.LoginBurst + 1 {
		status := http.StatusForbidden
		if i == access.LoginBurst {
			status = http.StatusTooManyRequests
		}
		want(t, "status of a wrong signature", f.serveOn(&sharedConn{}, wrong.Clone(t.Context())).Code, status)
	}
	want(t, "status of an unknown key", f.serveOn(&sharedConn{}, unknown).Code, http.StatusTooManyRequests)
	right := f.serveOn(&sharedConn{}, exampleRequest()).Code
	want(t, "status of the right secret", right, http.StatusBadRequest) // its path does not fit its action
}
