package frontendtest

import "time"

// Dialect is how a protocol says what every front-end must be able to do. The functions talk on one connection and fail
// the test on an answer that is not the one the protocol owes.
type Dialect struct {
	// New builds the front-end, with its default limits.
	New Maker

	// Greet brings a new connection to where it can be used. Nil: nothing to do.
	Greet func(*Client)

	// SubmitRequest is a request that submits a lasting job, the n-th of the test (all n differ), to be worked on within
	// LeaseFor if that is not zero; SubmitReply reads its positive reply.
	SubmitRequest func(n int, queue, body string) []byte
	SubmitReply   func(c *Client, n int)

	// Lease takes a job of a queue without waiting; ok is false when there was none.
	Lease func(c *Client, queue string) (job Leased, ok bool)

	// Complete finishes a job that the connection leased, and reads the reply if there is one.
	Complete func(c *Client, job Leased)

	// LeaseFor is how long a worker may take over a job of SubmitRequest; zero: as long as its connection lives.
	LeaseFor time.Duration

	// Released says that a job is ready again as soon as its worker's connection is gone.
	Released bool

	// Ping is a request without effect; Pong reads its reply.
	Ping []byte
	Pong func(*Client)

	// Garbage are broken requests; each must be answered, ignored or end in a close. Random bytes are added.
	Garbage [][]byte

	// Oversize begins a request that declares more than the front-end takes.
	Oversize []byte
}

// Leased is a job in a worker's hands.
type Leased struct {
	ID    string // as this protocol names it
	Queue string
	Body  string
}

// suiteQueue is where the suite's jobs wait.
const suiteQueue = "suite"

// submit is SubmitRequest and SubmitReply in one.
func (d Dialect) submit(c *Client, n int, body string) {
	c.stage.t.Helper()
	c.SendBytes(d.SubmitRequest(n, suiteQueue, body))
	d.SubmitReply(c, n)
}

// ping proves that a connection is in step.
func (d Dialect) ping(c *Client) {
	c.stage.t.Helper()
	c.SendBytes(d.Ping)
	d.Pong(c)
}

// dial opens a connection that is ready for use.
func (d Dialect) dial(s *Stage, name string) *Client {
	s.t.Helper()
	c := s.Dial(name)
	if d.Greet != nil {
		d.Greet(c)
	}
	return c
}
