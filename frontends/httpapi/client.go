package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"broker/core"
	"broker/core/notify"
)

// commitFor is how long an order waits for the disk.
const commitFor = 10 * time.Second

// asker is the broker's client for the time of one request.
type asker struct {
	b    core.Broker
	id   core.ClientID
	wake notify.Signal
}

func newAsker(b core.Broker) *asker {
	a := &asker{b: b, wake: notify.NewSignal()}
	a.id = b.Open(core.ClientOptions{Protocol: core.Internal, Wake: a.wake.Set})
	return a
}

func (a *asker) close() { a.b.Close(a.id) }

// ask has one operation decided and waits until what the reply tells is durable. A refusal of the core becomes one of HTTP.
func (a *asker) ask(op core.Op) (core.Reply, error) {
	replies := a.b.Do(a.id, []core.Op{op}, nil)
	if len(replies) == 0 {
		return core.Reply{}, errors.New("the broker did not answer")
	}
	r := replies[0]
	if err := a.await(r.Commit); err != nil {
		return r, err
	}
	if r.Kind == core.Failed {
		return r, &Refusal{Status: statusOf(r.Err), Err: r.Err}
	}
	return r, nil
}

// await waits for a commit.
func (a *asker) await(commit core.Commit) error {
	if a.b.Committed() >= commit {
		return nil
	}
	timeout := time.NewTimer(commitFor)
	defer timeout.Stop()
	for a.b.Committed() < commit {
		if a.b.Stopped() {
			return &Refusal{Status: http.StatusServiceUnavailable, Err: core.ErrStopped}
		}
		select {
		case <-a.wake:
			a.b.Do(a.id, nil, nil)
		case <-timeout.C:
			return errors.New("timed out waiting for the commit; the change may still apply")
		}
	}
	return nil
}

// statusOf is what HTTP calls a refusal of the core.
func statusOf(err error) int {
	for _, e := range []struct {
		kind   error
		status int
	}{
		{core.ErrNotFound, http.StatusNotFound},
		{core.ErrNoQueue, http.StatusNotFound},
		{core.ErrInvalid, http.StatusConflict},
		{core.ErrConflict, http.StatusConflict},
		{core.ErrHasDependents, http.StatusConflict},
		{core.ErrBusy, http.StatusConflict},
		{core.ErrStopped, http.StatusServiceUnavailable},
		{core.ErrShutdown, http.StatusServiceUnavailable},
	} {
		if errors.Is(err, e.kind) {
			return e.status
		}
	}
	return http.StatusInternalServerError
}

// handle answers requests by do, which gets a client of the broker.
func (s *Server) handle(do func(a *asker, r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := s.backend.Load()
		if b == nil {
			s.answer(w, http.StatusServiceUnavailable, map[string]any{"error": "starting"})
			return
		}
		a := newAsker(b.Broker)
		defer a.close()
		result, err := do(a, r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		s.answer(w, http.StatusOK, result)
	})
}

// reads wraps what tells of jobs and workers.
func (s *Server) reads(do func(a *asker, r *http.Request) (any, error)) http.Handler {
	return s.guarded(s.handle(do))
}

// changes wraps what changes something.
func (s *Server) changes(do func(a *asker, r *http.Request) (any, error)) http.Handler {
	return s.protected(s.handle(do))
}

// number reads a parameter of the query.
func number(q url.Values, name string, usual, most uint64) (uint64, error) {
	text := q.Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most {
		return 0, badOrder(fmt.Sprintf("%s must be a number up to %d", name, most))
	}
	return n, nil
}

// instant is how times are written; nil for none, so that the member is left out.
func instant(at core.Instant) *time.Time {
	if at == 0 {
		return nil
	}
	t := at.Time()
	return &t
}
