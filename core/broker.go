package core

// ClientID identifies a client of the broker: a connection or an internal user. Never reused within a process.
type ClientID uint64

// ClientOptions describe a client at Open.
type ClientOptions struct {
	Protocol Protocol

	// Wake is called when replies are waiting for the client, or when a commit that some of its replies depend on is
	// done. Any goroutine may call it, but never under the broker's lock. It must not block, and of the broker's
	// methods it may call only Committed and Stopped.
	Wake func()

	// Durable is called in place of Wake when a commit is done that some of the client's replies depend on, and called
	// like it; nil: Wake is called.
	Durable func()

	// Close closes the client's connection, for DisconnectClient; nil: the client has no connection. Called like
	// Wake.
	Close func()

	// Lost is called in place of Close for a client without a connection, if the leader of a cluster has failed and
	// nobody knows what the client is to be told. unsent says that the operations under way have reached no leader:
	// they have not been applied. It must not block, nor call the broker. May be nil.
	Lost func(unsent bool)

	Address  string // of the other end of the connection, for lists
	Identity string // subject of the client's TLS certificate
	Name     string // chosen by the client; NameClient changes it

	// Unlisted keeps a part of the broker itself out of lists and counts of clients.
	Unlisted bool
}

// Broker is the interface of the core for front-ends. All methods may be called from any goroutine, but only one
// goroutine at a time may use a client.
type Broker interface {
	// Open registers a client.
	Open(ClientOptions) ClientID

	// Do applies ops in order and appends all replies that are waiting for the client to into, in the order of the
	// decisions: older pushes may come first, and the reply of a waiting operation comes with a later call. Call it
	// without ops to fetch replies after Wake.
	Do(client ClientID, ops []Op, into []Reply) []Reply

	// Close removes a client: its waiting lease and its watches end, and leases held by its connection are released.
	Close(ClientID)

	// Committed returns the newest commit on disk; cheap, without a lock.
	Committed() Commit

	// Stopped reports that the store has failed: replies that wait for a commit are never released.
	Stopped() bool

	// Now returns the time of the broker's clock.
	Now() Instant
}

// DoOnce applies ops for a client that exists only during this call, and returns the immediate replies. It is for work
// without a connection, and for decisions that reveal nothing. The replies have no commit: nobody would be woken for
// it. Whoever answers with what may not be durable yet asks as the client that waits for the answer.
func DoOnce(b Broker, p Protocol, ops ...Op) []Reply {
	client := b.Open(ClientOptions{Protocol: p, Wake: func() {}})
	defer b.Close(client)
	replies := b.Do(client, ops, nil)
	for i := range replies {
		replies[i].Commit = 0
	}
	return replies
}
