package switchover

import (
	"encoding/json"
	"errors"
	"mime"
	"net"
	"net/http"
	"net/netip"

	"broker/migrate/wire"
)

// Status is what GET /queues replies.
type Status struct {
	Protocol string  `json:"protocol"`
	Server   string  `json:"server"`
	Broker   string  `json:"broker"`
	Queues   []Queue `json:"queues"`
}

// Change is the body of POST /queues, which replies with the Status.
type Change struct {
	Action string   `json:"action"` // cut-over or roll-back
	Queues []string `json:"queues"`
}

// The actions.
const (
	ActionCutOver  = "cut-over"
	ActionRollBack = "roll-back"
)

// Problem is the body of an error.
type Problem struct {
	Error string `json:"error"`
	Code  string `json:"code,omitempty"` // as in the broker's API
}

// status returns the states of all queues.
func (s *Switch) status() Status {
	return Status{Protocol: s.opts.Protocol, Server: s.opts.Server, Broker: s.opts.Broker, Queues: s.list()}
}

// Serve adds the routes for the report and the changes. With a nil switch they return errors.
func (s *Switch) Serve(mux *http.ServeMux) {
	mux.HandleFunc("GET /queues", func(w http.ResponseWriter, r *http.Request) {
		if s.allowed(w, r) {
			reply(w, http.StatusOK, s.status())
		}
	})
	mux.HandleFunc("POST /queues", func(w http.ResponseWriter, r *http.Request) {
		if !s.allowed(w, r) {
			return
		}
		var c Change
		// A page of another site cannot send this content type: the browser would ask for permission first (CORS) and
		// get none.
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json" {
			reply(w, http.StatusUnsupportedMediaType, Problem{Error: "the body must be application/json"})
			return
		}
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, wire.MaxMessage))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			reply(w, http.StatusBadRequest, Problem{Error: err.Error()})
			return
		}
		err = s.change(c)
		switch {
		case errors.Is(err, errNoLeader):
			reply(w, http.StatusServiceUnavailable, Problem{err.Error(), "no_leader"})
		case err != nil:
			reply(w, http.StatusConflict, Problem{Error: err.Error()})
		default:
			reply(w, http.StatusOK, s.status())
		}
	})
}

func (s *Switch) change(c Change) error {
	switch c.Action {
	case ActionCutOver:
		return s.CutOver(c.Queues...)
	case ActionRollBack:
		return s.RollBack(c.Queues...)
	}
	return errors.New("action is neither cut-over nor roll-back")
}

// allowed refuses requests from other machines, and requests with a foreign Host header (DNS rebinding).
func (s *Switch) allowed(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case !loopback(r.RemoteAddr), !loopback(r.Host):
		reply(w, http.StatusForbidden, Problem{Error: "only from this machine"})
	case s == nil:
		reply(w, http.StatusConflict, Problem{Error: "no queue can be cut over: start broker shadow with --to"})
	default:
		return true
	}
	return false
}

// loopback reports whether an address, with or without a port, is a loopback address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}
