package access

import (
	"slices"
	"strings"
	"sync/atomic"

	"broker/core"
)

// Principal is a person or program with rights. A reload of the settings changes the rights but keeps the Principal, so
// open connections get the new rights.
type Principal struct {
	name   string
	grants atomic.Pointer[[]Grant]
}

// Everyone may do everything. It is the principal of all clients if no principals are configured.
var Everyone = newPrincipal("", []Grant{{Role: Admin}})

// Names for clients that are not principals of the settings. No configured principal may have such a name: the audit
// log distinguishes clients by name, and operations, pages and idempotency keys belong to a name.
const (
	NameAnonymous  = "anonymous" // a client without credentials
	passwordSuffix = ".password" // follows the name of a port: http.password, faktory.password
)

// IsReserved reports whether a name is reserved: no principal of the settings may have it.
func IsReserved(name string) bool {
	protocol, found := strings.CutSuffix(name, passwordSuffix)
	return name == "" || name == NameAnonymous ||
		found && slices.ContainsFunc(core.Protocols[:], func(p core.Protocol) bool { return p.String() == protocol })
}

// passwordHolders are the principals that PasswordOf returns.
var passwordHolders = func() (all [len(core.Protocols)]*Principal) {
	for _, p := range core.Protocols {
		all[p] = newPrincipal(p.String()+passwordSuffix, []Grant{{Role: Admin}})
	}
	return all
}()

// PasswordOf is the principal of clients that know the password of a protocol's port, which gives all rights.
func PasswordOf(p core.Protocol) *Principal { return passwordHolders[p] }

// Nobody may not do anything. It is the principal of a client without credentials if principals are configured.
var Nobody = newPrincipal("", nil)

func newPrincipal(name string, grants []Grant) *Principal {
	p := &Principal{name: name}
	p.grants.Store(&grants)
	return p
}

// Name of the principal; empty for Everyone and Nobody.
func (p *Principal) Name() string { return p.name }

// HasRights reports whether the principal has a role for at least one queue.
func (p *Principal) HasRights() bool { return len(*p.grants.Load()) > 0 }

// May reports whether the principal has a role for a queue.
func (p *Principal) May(r Role, queue string) bool {
	for _, g := range *p.grants.Load() {
		if !g.Role.includes(r) {
			continue
		}
		if g.Queues == nil ||
			slices.ContainsFunc(g.Queues, func(pattern string) bool { return core.MatchQueue(pattern, queue) }) {
			return true
		}
	}
	return false
}

// Knows reports whether the principal has any role for a queue. Jobs of other queues do not exist for it.
func (p *Principal) Knows(queue string) bool {
	return slices.ContainsFunc([]Role{Read, Produce, Consume, Operate}, func(r Role) bool { return p.May(r, queue) })
}

// MayAll reports whether the principal has a role without limits: for every queue and for requests that belong to no
// queue.
func (p *Principal) MayAll(r Role) bool {
	for _, g := range *p.grants.Load() {
		if g.Role.includes(r) && g.Queues == nil {
			return true
		}
	}
	return false
}

// Patterns returns the patterns of the queues for which the principal has a role. all means every queue.
func (p *Principal) Patterns(r Role) (patterns []string, all bool) {
	patterns = []string{}
	for _, g := range *p.grants.Load() {
		switch {
		case !g.Role.includes(r):
		case g.Queues == nil:
			return nil, true
		default:
			patterns = append(patterns, g.Queues...)
		}
	}
	return patterns, false
}

// MaySome reports whether the principal has a role for at least one queue.
func (p *Principal) MaySome(r Role) bool {
	return slices.ContainsFunc(*p.grants.Load(), func(g Grant) bool { return g.Role.includes(r) })
}
