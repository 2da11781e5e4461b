package frontends

import (
	"broker/access"
	"broker/core"
)

// Peer is what every session knows: its connection, and the broker's client for it.
type Peer struct {
	Conn   Conn
	Broker *access.Guard
	Client core.ClientID

	Closing bool // no more input is read
}

// NewPeer begins a connection: it opens the broker's client.
func NewPeer(b *access.Guard, c Conn) Peer {
	return Peer{Conn: c, Broker: b, Client: OpenClient(b, c, nil)}
}

// HangUp stops reading and closes the connection once all output is sent.
func (p *Peer) HangUp() {
	p.Closing = true
	p.Conn.CloseAfterFlush()
}

// Principal is the principal of the client.
func (p *Peer) Principal() *access.Principal { return p.Broker.PrincipalOf(p.Client) }

// Allowed checks a role of the client for all queues, for a request that is not a core operation.
func (p *Peer) Allowed(r access.Role) bool { return p.Broker.Allowed(p.Client, r) }

// AllowedFor is Allowed for one queue.
func (p *Peer) AllowedFor(r access.Role, queue string) bool {
	return p.Broker.AllowedFor(p.Client, r, queue)
}

// Note adds a change of the client to the audit log.
func (p *Peer) Note(a access.Audit, c access.Change) { a.Note(p.Broker, p.Client, p.Conn, c) }

// CancelWaits ends everything that the client waits for, without an answer; see core.CancelWaits. A session never
// replaces its client to end a wait: replies that are held for a commit are woken through the client that asked for
// them.
func (p *Peer) CancelWaits() {
	p.Broker.Unguarded().Do(p.Client, []core.Op{&core.CancelWaits{}}, nil)
}

// Admission implements Admitter for a client that cannot log in: its certificate and the port alone say who it is.
func (p *Peer) Admission() Admission { return p.AdmissionOr(NoRights) }

// AdmissionOr is the admission of the client. without says what a client without a right may do.
func (p *Peer) AdmissionOr(without Rights) Admission {
	if principal := p.Principal(); principal.HasRights() {
		return Admission{Principal: principal}
	}
	return Admission{Rights: without}
}

// Requests reads the requests of a client one by one. A session embeds it, directly or in a Pipelined, calls Init, and
// writes Step. It may replace the methods Begin, End, Due, Flush, Blocked and Unblock.
type Requests struct {
	Peer
	HalfClosed bool // the client has closed its sending side
	Needed     int  // input bytes that the next request needs at least; zero: unknown. Step sets it.
	Drained    bool // no input is left behind the collected requests; set for Flush
	Costly     bool // the requests so far take so long that Feed returns after the next Flush; a Step or Due sets it

	session Stepper
}

// Stepper is the session, as Requests knows it.
type Stepper interface {
	// Step runs the first request of the input, adds it to the pipeline, or takes a part of it. It returns the number
	// of bytes that it has used. more is false if it needs more input before it can go on.
	Step(in []byte) (used int, more bool)

	// Begin comes before the first Step of a call of Feed, End after the last.
	Begin()
	End()

	// Due reports, after a Step, that Flush must come before the next one.
	Due() bool

	// Flush answers the requests that Step has collected.
	Flush()

	// Blocked implements Blocker: a request waits for its answer.
	Blocked() bool

	// Unblock answers the request that waits, since its client has closed its sending side.
	Unblock()
}

// Init makes Requests call its session.
func (x *Requests) Init(session Stepper) { x.session = session }

// Feed implements Session.
func (x *Requests) Feed(in []byte) int {
	s := x.session
	if x.Closing {
		return len(in)
	}
	if s.Blocked() || len(in) < x.Needed {
		return 0
	}
	s.Begin()
	defer s.End()
	x.Costly = false
	used := 0
	for used < len(in) && !x.Closing && !s.Blocked() {
		x.Needed, x.Drained = 0, false
		n, more := s.Step(in[used:])
		used += n
		if !more {
			break
		}
		if s.Due() {
			x.Drained = used == len(in)
			s.Flush()
			if x.Costly || x.Conn.Out().Len() > PauseAt {
				return x.used(used, in) // the loop serves others, or sends the output, before the next request
			}
		}
	}
	x.Drained = used == len(in)
	s.Flush()
	return x.used(used, in)
}

// used is the number of used bytes. A session that reads no more has used all.
func (x *Requests) used(n int, in []byte) int {
	if x.Closing {
		return len(in)
	}
	return n
}

// EOF implements Session: all whole requests are answered, without waiting.
func (x *Requests) EOF(in []byte) {
	x.HalfClosed = true
	for !x.Closing {
		x.session.Unblock()
		n := x.Feed(in)
		in = in[n:]
		if n == 0 || len(in) == 0 && !x.session.Blocked() {
			break
		}
	}
	x.Closing = true
}

// Begin implements Stepper for a session without a pipeline.
func (*Requests) Begin() {}

// End implements Stepper for a session without a pipeline.
func (*Requests) End() {}

// Due implements Stepper for a session that answers each request at once.
func (*Requests) Due() bool { return true }

// Flush implements Stepper for a session that answers each request at once.
func (*Requests) Flush() {}

// Blocked implements Blocker for a session without requests that wait.
func (*Requests) Blocked() bool { return false }

// Unblock implements Stepper for a session without requests that wait.
func (*Requests) Unblock() {}
