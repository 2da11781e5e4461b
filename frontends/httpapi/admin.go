package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
)

// maxOrder is the size of a request that orders something, in bytes.
const maxOrder = 64 << 10

// Refusal is an error of a Backend's function that is the caller's fault, with the status to say so.
type Refusal struct {
	Status int
	Err    error
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// orders wraps what changes something and reads a body.
func (s *Server) orders(do func(body []byte) (any, error)) http.Handler {
	return s.protected(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.order(w, r, do) }))
}

// order carries out one order. What is the caller's fault is told in full; who may give orders may know the rest too.
func (s *Server) order(w http.ResponseWriter, r *http.Request, do func(body []byte) (any, error)) {
	if s.backend.Load() == nil {
		s.answer(w, http.StatusServiceUnavailable, map[string]any{"error": "starting"})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxOrder))
	if err != nil {
		s.answer(w, http.StatusBadRequest, map[string]any{"error": "request too long or cut off"})
		return
	}
	result, err := do(body)
	if err == nil {
		s.answer(w, http.StatusOK, result)
		return
	}
	s.refuse(w, r, err)
}

// refuse tells why a request was not carried out.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
		status = refusal.Status
	} else {
		s.options.Log.Error().Err(err).Str("path", r.URL.Path).Msg("order failed")
	}
	s.answer(w, status, map[string]any{"error": err.Error()})
}

// badOrder says what is wrong with a request.
func badOrder(text string) error {
	return &Refusal{Status: http.StatusBadRequest, Err: errors.New(text)}
}

// decode reads a JSON object; an empty body is an empty one.
func decode(body []byte, into any) error {
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return &Refusal{Status: http.StatusBadRequest, Err: err}
	}
	return nil
}

// backup copies the store to a folder of this host.
func (s *Server) backup(body []byte) (any, error) {
	var ask struct {
		Dir string `json:"dir"`
	}
	if err := decode(body, &ask); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(ask.Dir) {
		return nil, badOrder("dir must be the absolute path of a folder that does not exist yet")
	}
	b := s.backend.Load()
	begin := b.Broker.Now()
	if err := b.Backup(ask.Dir); err != nil {
		return nil, err
	}
	took := b.Broker.Now().Sub(begin)
	s.options.Log.Info().Str("dir", ask.Dir).Dur("took_ms", took).Msg("backup made")
	return map[string]any{"dir": ask.Dir, "took_ms": took.Milliseconds()}, nil
}
