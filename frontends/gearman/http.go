package gearman

import (
	"strconv"
	"sync"
	"time"

	"broker/core"
	"broker/frontends"
	"broker/frontends/gearman/packet"
	"broker/frontends/shared/tracecontext"
)

// httpReadTimeout is the maximum pause between two parts of a request.
const httpReadTimeout = 10 * time.Second

// HTTP serves gearmand's HTTP protocol: a request submits a job to its function, and the answer is the result. A
// connection serves one request. It is a frontends.Frontend.
type HTTP struct {
	front *Frontend

	mu        sync.Mutex // guards lastInput
	lastInput map[*httpSession]core.Instant
}

// HTTP returns a front-end whose requests submit jobs in the same way as clients of f.
func (f *Frontend) HTTP() *HTTP {
	return &HTTP{front: f, lastInput: make(map[*httpSession]core.Instant)}
}

// Name implements frontends.Frontend.
func (h *HTTP) Name() string { return "gearman-http" }

// Bounds implements frontends.Frontend.
func (h *HTTP) Bounds() frontends.Bounds { return h.front.Bounds() }

// Open implements frontends.Frontend.
func (h *HTTP) Open(c frontends.Conn) frontends.Session {
	s := &httpSession{Peer: frontends.NewPeer(h.front.broker, c), h: h}
	h.noteInput(s)
	return s
}

// Tick implements frontends.Frontend: it closes the connections whose clients do not complete their requests.
func (h *HTTP) Tick(now core.Instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s, at := range h.lastInput {
		if now.Sub(at) >= httpReadTimeout {
			delete(h.lastInput, s)
			s.Conn.Abort()
		}
	}
}

// noteInput restarts the timeout of a client that has sent input.
func (h *HTTP) noteInput(s *httpSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastInput[s] = h.front.broker.Now()
}

// forget ends the timeout of a client when its request is complete or its connection is closed.
func (h *HTTP) forget(s *httpSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.lastInput, s)
}

// httpSession is one connection. It reads one request and writes one answer.
type httpSession struct {
	frontends.Peer
	h *HTTP

	answered   bool
	http11     bool   // the client speaks HTTP/1.1
	head       bool   // the answer has no body
	background bool   // the answer is the handle alone
	data       []byte // from WORK_DATA packets
	replies    []core.Reply
}

// Feed implements frontends.Session.
func (s *httpSession) Feed(in []byte) int {
	if s.Closing {
		return len(in)
	}
	r, status, done := parseHTTP(in, s.h.front.opts.MaxBodyBytes)
	if status == "" && !done {
		s.h.noteInput(s)
		return 0
	}
	s.Closing = true
	s.h.forget(s)
	s.http11, s.head, s.background = r.http11, r.head, r.background
	switch {
	case status != "":
		s.refuse(status)
	case len(r.function) == 0: // HEAD without a function is a health check
		s.write("", "", nil, 0)
	default:
		s.submit(&r)
	}
	return len(in)
}

// submit submits the job.
func (s *httpSession) submit(r *httpRequest) {
	n := newName(string(r.function), &s.h.front.opts)
	if len(r.unique) > maxUniqueBytes || !n.valid() {
		s.refuse(httpBadRequest)
		return
	}
	var scratch []byte
	op := &core.Submit{Job: s.h.front.newJob(n, &r.submission, &scratch)}
	op.Job.Trace = tracecontext.Join(string(r.traceparent), string(r.tracestate))
	if !r.background {
		op.Watch = core.WatchStream
	}
	s.do(op)
}

// Deliver implements frontends.Session.
func (s *httpSession) Deliver() { s.do() }

// do applies operations and handles the replies.
func (s *httpSession) do(ops ...core.Op) {
	s.replies = s.h.front.broker.Do(s.Client, ops, s.replies[:0])
	for i := range s.replies {
		if !s.answered {
			s.answer(&s.replies[i])
		}
	}
	clear(s.replies)
}

// answer handles a reply. It drops progress and warnings, which an HTTP answer cannot carry.
func (s *httpSession) answer(r *core.Reply) {
	switch r.Kind { //nolint:exhaustive // other replies are not for clients that submit
	case core.Submitted:
		if s.background {
			s.write(s.handle(r), packet.JobCreated.Layout().Name, nil, r.Commit)
		}
	case core.DataSent:
		s.addData(r.Data)
	case core.Ended:
		s.end(r)
	case core.Failed:
		e := packetError(r.Err, nil)
		switch e.code {
		case codeForbidden:
			s.refuse(httpForbidden)
		case codeArguments:
			s.refuse(httpBadRequest)
		default:
			s.refuse(httpUnavailable)
		}
	}
}

// end answers with the outcome of the job.
func (s *httpSession) end(r *core.Reply) {
	failure := r.Outcome.Failure
	switch {
	case r.Outcome.Success:
		if s.addData(r.Data) {
			s.write(s.handle(r), packet.WorkComplete.Layout().Name, s.data, r.Commit)
		}
	case s.h.front.opts.ExceptionsForAll && failure != nil && failure.Exception:
		s.write(s.handle(r), packet.WorkException.Layout().Name, failure.Data, r.Commit)
	default:
		s.write(s.handle(r), packet.WorkFail.Layout().Name, nil, r.Commit)
	}
}

// addData keeps a part of the result. It answers with an error if the result exceeds the limit for workloads.
func (s *httpSession) addData(part []byte) (ok bool) {
	if len(s.data)+len(part) > s.h.front.opts.MaxBodyBytes {
		s.refuse(httpServerError)
		return false
	}
	s.data = append(s.data, part...)
	return true
}

func (s *httpSession) handle(r *core.Reply) string {
	return string(s.h.front.opts.Handles.Append(nil, r.Seq))
}

// write answers with status 200. The answer is sent once commit is durable.
func (s *httpSession) write(handle, command string, body []byte, commit core.Commit) {
	out := s.Conn.Out()
	b := append(out.Buf(), s.statusLine("200 OK")...)
	if handle != "" {
		b = append(append(append(b, "X-Gearman-Job-Handle: "...), handle...), "\r\n"...)
	}
	if !s.head {
		b = append(append(append(b, "X-Gearman-Command: "...), command...), "\r\n"...)
	}
	b = strconv.AppendInt(append(b, "Content-Length: "...), int64(len(body)), 10)
	b = append(b, "\r\nServer: Gearman/"+s.h.front.opts.Version+"\r\n\r\n"...)
	if !s.head {
		b = append(b, body...)
	}
	out.Put(b, commit)
	s.close()
}

// refuse answers with another status.
func (s *httpSession) refuse(status httpStatus) {
	s.Conn.Out().Write(s.refusal(status))
	s.close()
}

func (s *httpSession) refusal(status httpStatus) []byte {
	return []byte(s.statusLine(status) + "Server: Gearman/" + s.h.front.opts.Version + "\r\nContent-Length: 0\r\n\r\n")
}

// statusLine is the first line of an answer in the HTTP version of the request. For HTTP/1.1 it includes the header
// that announces the end of the connection; HTTP/1.0 implies it.
func (s *httpSession) statusLine(status httpStatus) string {
	if s.http11 {
		return "HTTP/1.1 " + string(status) + "\r\nConnection: close\r\n"
	}
	return "HTTP/1.0 " + string(status) + "\r\n"
}

// close closes the connection after the answer.
func (s *httpSession) close() {
	s.answered, s.data = true, nil
	s.Conn.CloseAfterFlush()
}

// Dismiss implements frontends.Admitter. An HTTP status has no room for the text.
func (s *httpSession) Dismiss(string) {
	s.Closing = true
	s.h.forget(s)
	s.refuse(httpForbidden)
}

// Refusal implements frontends.Session.
func (s *httpSession) Refusal() []byte { return s.refusal(httpUnavailable) }

// EOF implements frontends.Session. As in gearmand, a client that closes its sending side gets no result.
func (s *httpSession) EOF(in []byte) { s.Feed(in) }

// Closed implements frontends.Session.
func (s *httpSession) Closed() {
	s.Closing, s.answered = true, true
	s.h.forget(s)
	s.h.front.broker.Close(s.Client)
}
