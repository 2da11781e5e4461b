package frontends

import "broker/access"

// Options are the options that every front-end has; zero values mean its defaults.
type Options struct {
	// Namespace is the prefix of all queues of this front-end. Clients do not see it.
	Namespace string

	// Route maps the queue and type that a client submits to other ones. A mapped queue name gets no namespace prefix.
	// Nil: no change.
	Route func(queue, typ string) (string, string)

	// Audit receives the changes that operators make. It is called on an event loop and must not block. May be nil.
	Audit access.Audit

	// Password is required of clients; empty: none, unless principals have their own. Protocols that have no login
	// ignore it.
	Password string

	// Leader is the front-end of the leader, for that of a node that follows. Nil: this one decides for all, as those
	// of protocols without a part that clients of all nodes share always do.
	Leader Leader

	// MaxBodyBytes limits the data of a job, or the part of a request that it is in.
	MaxBodyBytes int

	// MaxOutputBytes limits the unsent output of a connection. A single larger reply is allowed if there is no other
	// output. Faktory, whose replies have a bound of their own, and SQS ignore it.
	MaxOutputBytes int
}

// WithDefaults returns the options with these values for limits that are not set.
func (o Options) WithDefaults(bodyBytes, outputBytes int) Options {
	if o.MaxBodyBytes <= 0 {
		o.MaxBodyBytes = bodyBytes
	}
	if o.MaxOutputBytes <= 0 {
		o.MaxOutputBytes = outputBytes
	}
	return o
}
