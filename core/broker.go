package core

// ClientID names a client of the broker: one connection, or one internal user. Never reused within a process.
type ClientID uint64

// ClientOptions describe a client at Open.
type ClientOptions struct {
	Protocol Protocol

	// Wake is called, from any goroutine and never under the broker's lock, when replies wait for the client or when a
	// commit has come that some of its replies rest on. It must not block and must not call the broker.
	Wake func()

	// Close ends the client's connection, on behalf of DisconnectClient; nil: there is none. Called like Wake.
	Close func()

	Address  string // of the other end of the connection, for lists
	Identity string // subject of the client's TLS certificate
	Name     string // the client's own word for itself; NameClient sets it later
}

// Broker is what front-ends hold. All methods may be called from any goroutine; a client is used by one at a time.
type Broker interface {
	// Open registers a client.
	Open(ClientOptions) ClientID

	// Do applies ops in order and appends to into all replies that wait for the client, in the order in which they
	// were decided: older pushes may come first, and a reply of a parked or waiting operation comes by a later call.
	// Call it without ops to fetch what Wake announced.
	Do(client ClientID, ops []Op, into []Reply) []Reply

	// Close forgets a client: its parked lease and watches end, its connection-held leases are released.
	Close(ClientID)

	// Committed is the newest commit on disk; cheap, no lock.
	Committed() Commit

	// Stopped reports that the store has failed: no held reply will ever be released.
	Stopped() bool

	// Now is the broker's clock.
	Now() Instant
}

// DoOnce applies ops in the name of a client that exists for this call only, and returns the replies that are there at
// once. It is for work that no connection stands behind.
func DoOnce(b Broker, p Protocol, ops ...Op) []Reply {
	client := b.Open(ClientOptions{Protocol: p, Wake: func() {}})
	defer b.Close(client)
	return b.Do(client, ops, nil)
}
