package resp

import "broker/access"

// Options are the options of every front-end of this package; zero values mean the defaults.
type Options struct {
	// Password that clients send with AUTH. Empty: no password is required.
	Password string

	// MaxBodyBytes limits an argument of a command, and so the data of a job. Default: 16 MiB.
	MaxBodyBytes int

	// MaxOutputBytes limits the unsent output of a connection. Default: 16 MiB; a single larger reply is allowed.
	MaxOutputBytes int

	// Namespace is the prefix of all queues of this front-end. Clients do not see it.
	Namespace string

	// Audit is called after each change by an operator. May be nil.
	Audit access.Audit

	// Route maps the queue and type that a client submits to other ones. A mapped queue name gets no namespace prefix.
	// Nil: no change.
	Route func(queue, typ string) (string, string)
}

// defaultBytes is the default of MaxBodyBytes and MaxOutputBytes.
const defaultBytes = 16 << 20

// WithDefaults returns the options with defaults for unset limits.
func (o Options) WithDefaults() Options {
	if o.MaxBodyBytes <= 0 {
		o.MaxBodyBytes = defaultBytes
	}
	if o.MaxOutputBytes <= 0 {
		o.MaxOutputBytes = defaultBytes
	}
	return o
}
