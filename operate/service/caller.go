package service

import (
	"broker/access"
	"broker/core"
)

// Caller is the client that makes a call.
type Caller struct {
	Principal *access.Principal
	Address   string // of the connection
	Via       string // http, console
	Identity  string // subject of the client's certificate

	// Access revokes the rights of Everyone when a reload adds the first principals; nil: never.
	Access *access.Control

	// Made collects what the caller changes by its calls and can undo; nil: nothing.
	Made *Made

	name string // of the principal, if the principal itself is not available
}

// Made are changes that can be undone: ids of operations and, as audit-N, of entries of the audit log. It belongs to
// the goroutine of a request.
type Made struct{ IDs []string }

// Add adds a change.
func (m *Made) Add(id string) {
	if m != nil {
		m.IDs = append(m.IDs, id)
	}
}

// Name is the name of the caller in the audit log. Idempotency keys, pages and operations belong to this name. Callers
// that are not principals of the settings have reserved names.
func (c Caller) Name() string {
	if c.name != "" {
		return c.name
	}
	if c.Principal == nil || c.Principal.Name() == "" {
		return access.NameAnonymous
	}
	return c.Principal.Name()
}

// Holder is the holder of the caller's places in pools.
func (c Caller) Holder() access.Holder {
	return access.NamedHolder(c.Name(), c.mayAll(access.Admin) == nil)
}

// principalName is the name of the caller's principal; empty: none.
func (c Caller) principalName() string {
	if c.Principal == nil || access.IsReserved(c.Principal.Name()) {
		return ""
	}
	return c.Principal.Name()
}

// Current is the caller's principal as of now; access.Nobody if it has none or a reload has revoked it.
func (c Caller) Current() *access.Principal {
	if c.Principal == nil || c.Access.Revoked(c.Principal) {
		return access.Nobody
	}
	return c.Principal
}

// may checks that the caller has a role for a queue.
func (c Caller) may(r access.Role, queue string) error {
	if c.Current().May(r, queue) {
		return nil
	}
	return &Error{
		Code: CodeForbidden, Detail: "principal " + c.Name() + " lacks the role " + r.String() + " for queue " + queue,
	}
}

// mayOf is may for the queue of something that the caller has named, such as a job. The error does not name the queue.
// A caller without any role for the queue gets the error for something that does not exist, so it does not learn
// whether this one does; one without the role for any queue has been refused before (maySome). missing may be nil, if
// the caller knows it already.
func (c Caller) mayOf(r access.Role, queue, what string, missing error) error {
	if c.may(r, queue) == nil {
		return nil
	}
	if p := c.Current(); missing != nil && p.MaySome(r) && !p.Knows(queue) {
		return missing
	}
	return &Error{
		Code:   CodeForbidden,
		Detail: "principal " + c.Name() + " lacks the role " + r.String() + " for the queue of this " + what,
	}
}

// Require checks that the caller has a role without limits, for requests that do not use a Service.
func (c Caller) Require(r access.Role) error { return c.mayAll(r) }

// RequireSome requires a role for at least one queue.
func (c Caller) RequireSome(r access.Role) error { return c.maySome(r) }

// maySome checks that the caller has a role for at least one queue.
func (c Caller) maySome(r access.Role) error {
	if c.Current().MaySome(r) {
		return nil
	}
	return c.mayAll(r)
}

// mayAll checks that the caller has a role without limits.
func (c Caller) mayAll(r access.Role) error {
	if c.Current().MayAll(r) {
		return nil
	}
	return &Error{Code: CodeForbidden, Detail: "principal " + c.Name() + " lacks the role " + r.String()}
}

// mayRead checks that the caller may read a queue; empty: all.
func (c Caller) mayRead(queue string) error {
	if queue == "" {
		return c.mayAll(access.Read)
	}
	return c.may(access.Read, queue)
}

// readsAll reports whether the caller may read all queues.
func (c Caller) readsAll() bool { return c.mayAll(access.Read) == nil }

// readable returns the patterns of the queues that the caller may read.
func (c Caller) readable() []string {
	patterns, _ := c.Current().Patterns(access.Read)
	return patterns
}

// mayLimit checks that the caller has a role for all queues of a limit. A shared limit with types needs the role for
// all queues.
func (c Caller) mayLimit(r access.Role, l *core.Limit) error {
	if len(l.Types) > 0 {
		return c.mayAll(r)
	}
	for _, queue := range l.Queues {
		if err := c.may(r, queue); err != nil {
			return err
		}
	}
	return nil
}
