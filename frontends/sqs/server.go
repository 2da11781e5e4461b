package sqs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"broker/access"
	"broker/frontends"
	"broker/frontends/shared/httpserver"
)

// maxRequestBytes limits the body of a request. JSON needs up to six bytes for a byte of a message, forms three.
const maxRequestBytes = 6*maxBatchBytes + requestOverhead

// Time limits of a connection. A long poll lasts 20 seconds, a commit at most commitTimeout.
const (
	readTimeout  = 30 * time.Second
	writeTimeout = 90 * time.Second
	guestIdle    = 10 * time.Second // of a connection on which no request was authenticated
	refusedFor   = time.Second      // the same, after a reply to a request whose body was not read
)

// Sizes of the body of a request. More memory is allocated as bytes arrive.
const (
	freeBody  = 16 << 10 // bytes that are not counted
	bodyBlock = 64 << 10 // the rest is counted in blocks
)

// Server is the net/http server of the front-end.
func (f *Frontend) Server() *http.Server {
	s := httpserver.New(f, readTimeout, writeTimeout)
	s.ConnState = connState
	s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, frontends.SharedConnOf(nc))
	}
	return s
}

// connKey is the context key of the frontends.SharedConn of a request.
type connKey struct{}

// connState ends connections that are idle though no request on them was authenticated.
func connState(nc net.Conn, state http.ConnState) {
	shared := frontends.SharedConnOf(nc)
	switch {
	case shared == nil:
	case state == http.StateActive:
		shared.Busy()
	case state == http.StateIdle:
		shared.Idle(guestIdle)
	}
}

// request is a request in progress.
type request struct {
	front *Frontend
	ctx   context.Context
	wire  *wireRequest
	from  caller
	host  string               // start of queue URLs
	trace string               // header X-Amzn-Trace-Id
	conn  frontends.SharedConn // nil: the connection has no share of limits
	held  []func()             // give the bytes of the request back
	whole bool                 // the body was read to its end

	// giveBack releases the leases in the reply; nil: none. It is called if the client has disconnected before the
	// reply, or if the reply cannot be written. A client that has disconnected after the reply has its messages.
	giveBack func()
}

// ServeHTTP implements http.Handler.
func (f *Frontend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := f.broker.Now()
	// client watches the request's context and the end of the front-end separately, because a combined context would
	// cost a waiting poll two kilobytes.
	q := &request{
		front: f, ctx: r.Context(), wire: &wireRequest{}, trace: r.Header.Get("X-Amzn-Trace-Id"), host: f.hostURL(r),
	}
	q.conn, _ = r.Context().Value(connKey{}).(frontends.SharedConn)
	out, err := q.serve(r)
	for _, release := range q.held {
		release()
	}
	if l := out.waits; l != nil {
		_ = l.c.Wait(q.ctx) // here, where the stack is not deep; conclude sees the error again
		out, err = q.guard(l.conclude)
	}
	if q.giveBack != nil && (err != nil || q.ctx.Err() != nil || f.ctx.Err() != nil) {
		q.giveBack()
		q.giveBack, out.result = nil, &receiveOutput{}
	}
	sent := out.reply
	if sent == nil || err != nil {
		sent = q.encode(out, err)
	}
	f.meter.count(q.wire.action, sent.Status, f.broker.Now().Sub(begin))
	if r.ContentLength != 0 && !q.whole {
		q.leaveBody(w)
	}
	if err = sent.write(w); err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if q.giveBack != nil && err != nil && !errors.Is(err, http.ErrNotSupported) {
		q.giveBack()
	}
}

// leaveBody makes the reply leave before the body has come, and ends the connection soon after it. Until then net/http
// reads a part of the body, so that a client that sends all of it before it reads gets the reply.
func (q *request) leaveBody(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	if q.conn != nil {
		q.conn.Idle(refusedFor)
	}
}

// reply is a response.
type reply struct {
	Status      int
	RequestID   string
	QueryError  string `json:",omitempty"` // empty: it is none
	ErrorType   string `json:",omitempty"`
	ContentType string
	Body        []byte
}

// encode makes the response to a request that is complete.
func (q *request) encode(out outcome, err error) *reply {
	a := &reply{Status: http.StatusOK, RequestID: uuid.NewString()}
	if err == nil {
		a.Body, a.ContentType, err = q.wire.encodeResult(out.result, a.RequestID)
	}
	if err != nil {
		e := errorOf(err)
		a.QueryError = e.kind.code + ";" + e.fault()
		if q.wire.isJSON {
			a.ErrorType = typePrefix + e.kind.name
		}
		a.Body, a.ContentType, a.Status = q.wire.encodeError(e, a.RequestID)
	}
	return a
}

// write sends a response.
func (a *reply) write(w http.ResponseWriter) error {
	h := w.Header()
	h.Set("X-Amzn-Requestid", a.RequestID)
	if a.QueryError != "" {
		h.Set("X-Amzn-Query-Error", a.QueryError)
	}
	if a.ErrorType != "" {
		h.Set("X-Amzn-Errortype", a.ErrorType)
	}
	h.Set("Content-Type", a.ContentType)
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(a.Status)
	_, err := w.Write(a.Body)
	return err
}

// serve runs a request until it has its result or waits. A request that may wait runs on another goroutine: decoding
// needs a deep stack, which the goroutine of the connection would keep while it waits.
func (q *request) serve(r *http.Request) (out outcome, err error) {
	run := func() { out, err = q.guard(func() (outcome, error) { return q.start(r) }) }
	if target := r.Header.Get("X-Amz-Target"); target != "" && target != targetHead+receiveAction {
		run()
		return out, err
	}
	q.front.stacks.run(run)
	return out, err
}

// guard runs a part of a request. A panic only fails this request.
func (q *request) guard(run func() (outcome, error)) (out outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			q.front.opts.Panicked(p, debug.Stack())
			out, err = outcome{}, errPanic
		}
	}()
	return run()
}

// start reads and runs a request.
func (q *request) start(r *http.Request) (out outcome, err error) {
	q.wire.isJSON, q.wire.queryJSON = r.Header.Get("X-Amz-Target") != "", acceptsJSON(r)
	if fromPage(r) {
		return out, refuse(accessDenied, "Pages of web sites may not use this service.")
	}
	body, err := q.authenticate(r)
	if err != nil {
		return out, err
	}
	w, err := readRequest(r, body)
	q.wire = w
	if err != nil {
		return out, err
	}
	c, known := commands[w.action]
	if !known {
		return out, refuse(unknownOperation, "The action %s is not valid for this endpoint.", w.action)
	}
	if q.front.follows() && !atNode[w.action] {
		return q.forward(r, body)
	}
	return c.run(q)
}

// errPanic is a panic in a request. No client sees its text.
var errPanic = errors.New("panic")

// fromPage reports whether a web page made the browser send this request. A hostile page could otherwise use a broker
// in the visitor's network. Browsers do not send the origin of a GET over http to another host, or to their own host,
// which an attacker's name server may give this address. So fromPage checks for a browser's User-Agent. Some programs
// (Celery) also call themselves Mozilla, but they sign in a header, and they do not send a language as all browsers do.
func fromPage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return r.Header.Get("Origin") != "" || site != "" && site != "none" ||
		site == "" && strings.HasPrefix(r.UserAgent(), "Mozilla/") &&
			(r.Header.Get("Authorization") == "" || r.Header.Values("Accept-Language") != nil)
}

// hostURL is the start of queue URLs.
func (f *Frontend) hostURL(r *http.Request) string {
	if f.opts.URL != "" {
		return f.opts.URL
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// authenticate finds the principal of a request and reads its body. If the access key is unknown, it does not read the
// body.
func (q *request) authenticate(r *http.Request) (body []byte, err error) {
	control := q.front.guard.Control()
	q.from = caller{address: r.RemoteAddr, principal: q.front.guard.Default()}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		cert := r.TLS.VerifiedChains[0][0]
		q.from.identity = cert.Subject.String()
		if p := control.ByCertificate(cert); p != nil {
			q.from.principal = p
		}
	}
	if !control.HasSQSKeys() {
		if q.from.principal == access.Nobody {
			return nil, q.front.forbid("sqs")
		}
		return q.readAs(r, q.from.principal)
	}
	s, err := readSignature(r)
	switch {
	case err != nil:
		return nil, err
	case s == nil && q.from.principal == access.Nobody:
		q.front.guard.CountRefusal()
		return nil, refuse(missingToken, "The request must contain a valid access key.")
	case s == nil:
		return q.readAs(r, q.from.principal)
	}
	now := q.front.broker.Now()
	p, secret := control.BySQSKey(s.key)
	if p == nil {
		return nil, q.failed(s.key, refuse(unknownKey, "The security token included in the request is invalid."))
	}
	if err := s.checkScope(r, now.Time()); err != nil {
		return nil, q.failed(s.key, err)
	}
	if body, err = q.readBody(r); err != nil {
		return nil, err
	}
	if err := s.check(r, body, secret); err != nil {
		return nil, q.failed(s.key, err)
	}
	q.from.principal = p
	return body, q.admit(p)
}

// failed counts a failed login with an access key. After too many it refuses with another error: clients wait longer
// before they try again.
func (q *request) failed(key string, err error) error {
	if q.front.guard.Control().Logins().Failed(q.from.address, key, q.front.broker.Now()) > 0 {
		return refuse(throttled, "Too many failed logins.")
	}
	return err
}

// readAs reads the body of a request whose principal is known.
func (q *request) readAs(r *http.Request, p *access.Principal) ([]byte, error) {
	if err := q.admit(p); err != nil {
		return nil, err
	}
	return q.readBody(r)
}

// admit gives the connection to the principal of the request.
func (q *request) admit(p *access.Principal) error {
	if q.conn != nil && q.conn.Admit(p) != nil {
		return refuse(unavailable, "Too many connections of this principal.")
	}
	return nil
}

// readBody reads the body. Its bytes count for the principal that the connection was given to by an earlier request,
// otherwise for its address, because the body is part of what proves who asks.
func (q *request) readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength > maxRequestBytes {
		return nil, refuse(requestTooLarge, "The request is longer than %d bytes.", maxRequestBytes)
	}
	var b bytes.Buffer
	if r.ContentLength > 0 {
		b.Grow(int(min(r.ContentLength, bodyBlock)) + bytes.MinRead)
	}
	n, err := b.ReadFrom(&countedBody{body: io.LimitReader(r.Body, maxRequestBytes+1), q: q, free: freeBody})
	switch {
	case errors.Is(err, errShare):
		return nil, refuse(unavailable, "Too many bytes of requests of this client at once.")
	case err != nil:
		return nil, refuse(serialization, "The body could not be read.")
	case n > maxRequestBytes:
		return nil, refuse(requestTooLarge, "The request is longer than %d bytes.", maxRequestBytes)
	}
	q.whole = true
	return b.Bytes(), nil
}

// countedBody counts the bytes of a body in blocks before it reads them.
type countedBody struct {
	body io.Reader
	q    *request
	free int // bytes that may be read before the next block is counted
}

var errShare = errors.New("the client holds its share of bytes")

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	if b.free == 0 {
		if b.q.conn != nil {
			release, ok := b.q.conn.Hold(bodyBlock)
			if !ok {
				return 0, errShare
			}
			b.q.held = append(b.q.held, release)
		}
		b.free = bodyBlock
	}
	n, err := b.body.Read(p[:min(len(p), b.free)])
	b.free -= n
	return n, err
}
