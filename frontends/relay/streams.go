package relay

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"
)

// maxEvents is how many bytes a stream may send without the end of an event.
const maxEvents = 1 << 20

var errLongEvent = errors.New("the leader sends an event without an end")

// stream is a stream of server-sent events that is passed on. It goes on at the next leader as a client would that
// connects again: its last id is asked for, and the answer says whether events were lost. A stream without ids ends.
type stream struct {
	gateway *Gateway
	asked   *http.Request // of the leader
	from    *source
	pending []byte // what was read and not passed on; the first whole bytes are whole events
	whole   int
	id      string // of the last event
	failed  error
}

// source is what one leader sends of a stream.
type source struct{ io.ReadCloser }

// end implements passed.
func (s *source) end() { _ = s.Close() } // its reader sees it

// outlives makes a stream of events outlive the leader.
func (g *Gateway) outlives(answer *http.Response) error {
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err == nil && kind == "text/event-stream" && answer.StatusCode == http.StatusOK {
		s := &stream{gateway: g, asked: answer.Request}
		s.begin(answer.Body)
		answer.Body = s
	}
	return nil
}

// begin reads from a leader. That ends when another node leads: a leader that stands still would not end it.
func (s *stream) begin(body io.ReadCloser) {
	s.from, s.failed = &source{body}, nil
	s.gateway.add(s.from, s.gateway.leaderID())
}

// Read implements io.Reader. It returns whole events only, so that what follows them is another event.
func (s *stream) Read(p []byte) (int, error) {
	for s.whole == 0 {
		if s.failed != nil && !s.again() {
			return 0, io.EOF
		}
		s.fill()
		if s.whole == 0 && len(s.pending) > maxEvents {
			return 0, errLongEvent
		}
	}
	n := copy(p, s.pending[:s.whole])
	s.pending, s.whole = s.pending[n:], s.whole-n
	return n, nil
}

// fill reads what there is, and looks for the end of the last event and for its id.
func (s *stream) fill() {
	var chunk [4096]byte
	n, err := s.from.Read(chunk[:])
	s.pending, s.failed = append(s.pending, chunk[:n]...), err
	s.whole = bytes.LastIndex(s.pending, []byte("\n\n")) + 1
	if s.whole == 0 {
		return
	}
	s.whole++
	events := append([]byte("\n"), s.pending[:s.whole]...)
	if at := bytes.LastIndex(events, []byte("\nid:")); at >= 0 {
		id, _, _ := bytes.Cut(events[at+len("\nid:"):], []byte("\n"))
		s.id = string(bytes.TrimPrefix(id, []byte(" ")))
	}
}

// again asks the next leader for the events after the last one. It returns false if there is no leader in time, or it
// refuses that.
func (s *stream) again() bool {
	_ = s.Close() // it has ended
	s.pending = nil
	began, ctx := time.Now(), s.asked.Context()
	for s.id != "" && ctx.Err() == nil && time.Since(began) < leaderWait && !s.gateway.current().closed {
		r := s.asked.Clone(ctx)
		r.Header.Set("Last-Event-ID", s.id)
		answer, err := s.gateway.transport.RoundTrip(r)
		switch {
		case err == nil && answer.StatusCode == http.StatusOK:
			s.begin(answer.Body)
			return true
		case err == nil:
			_ = answer.Body.Close() // its status says it
			if answer.StatusCode != http.StatusServiceUnavailable {
				return false
			}
		}
		wait(ctx, s.gateway.current().changed)
	}
	return false
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.gateway.remove(s.from)
	return s.from.Close()
}
