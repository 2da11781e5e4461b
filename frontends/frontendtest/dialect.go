package frontendtest

import (
	"testing"
	"time"

	"broker/core"
	"broker/frontends"
)

// Dialect supplies the requests of a protocol to the suite. The functions use one connection and fail the test on an
// unexpected reply.
type Dialect struct {
	// New builds the front-end, with its default limits.
	New Maker

	// Follow builds the front-end of a node that follows, which implements frontends.Shared, as the one of New does.
	// Nil: clients of all nodes share nothing but the broker, and New builds it.
	Follow func(core.Broker, frontends.Leader) frontends.Frontend

	// AtLeader means that a node that follows has no sessions of the front-end: they are at the leader.
	AtLeader bool

	// Within runs a case in a special environment, such as a synctest bubble, with a dialect for it. May be nil.
	Within func(t *testing.T, run func(*testing.T, Dialect))

	// Settle waits until the front-end has done what it can, if it has goroutines of its own. May be nil.
	Settle func()

	// Same removes from output what differs between equal replies, such as random ids. Nil: nothing differs.
	Same func([]byte) []byte

	// Greet completes the handshake of a new connection. Nil: there is none.
	Greet func(*Client)

	// SubmitRequest is a request that submits a durable job, the n-th of the test, with a lease of LeaseFor.
	// SubmitReply reads its positive reply.
	SubmitRequest func(n int, queue, body string) []byte
	SubmitReply   func(c *Client, n int)

	// Lease leases a job of a queue without waiting; ok is false if there is none.
	Lease func(c *Client, queue string) (job Leased, ok bool)

	// Complete finishes a job that the connection leased, and reads the reply if there is one.
	Complete func(c *Client, job Leased)

	// LeaseFor is the duration of a lease on a job of SubmitRequest; zero: until the connection ends.
	LeaseFor time.Duration

	// Released means that a job is ready again as soon as the connection of its worker ends.
	Released bool

	// Ping is a request without effects; Pong reads its reply.
	Ping []byte
	Pong func(*Client)

	// Commands are the names in the front-end's tables of commands, or its routes. Each has at least one exchange.
	Commands  []string
	Exchanges []Exchange

	// Garbage are malformed requests. Each must be answered or ignored, or close the connection. The suite adds random
	// ones.
	Garbage [][]byte

	// Oversize is the start of a request that announces more than the front-end accepts.
	Oversize []byte

	overLink bool // the sessions are at a node that follows
}

// Exchange is a request of a client that is answered, or closes the connection, beside one ready job: the first of
// SubmitRequest.
type Exchange struct {
	Command string // in Commands
	Before  string // earlier requests of the client, whose replies do not matter
	Send    string
	Fill    func(before []byte) string // makes Send of the replies to Before; may be nil

	// Early means that the answer leaves before the commit although the broker has said something about jobs, because
	// the answer itself does not.
	Early bool
}

// Leased is a job that a worker holds.
type Leased struct {
	ID    string // in the form of the protocol
	Queue string
	Body  string
}

// suiteQueue is the queue of the suite's jobs.
const suiteQueue = "suite"

// submit submits a job and reads the reply.
func (d Dialect) submit(c *Client, n int, body string) {
	c.stage.t.Helper()
	c.SendBytes(d.SubmitRequest(n, suiteQueue, body))
	d.SubmitReply(c, n)
}

// ping checks that a connection is in sync.
func (d Dialect) ping(c *Client) {
	c.stage.t.Helper()
	c.SendBytes(d.Ping)
	d.Pong(c)
}

// dial opens a connection and completes its handshake.
func (d Dialect) dial(s *Stage, name string) *Client {
	s.t.Helper()
	c := s.Dial(name)
	if d.Greet != nil {
		d.Greet(c)
	}
	return c
}
