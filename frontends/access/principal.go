package access

import (
	"slices"
	"strings"
	"sync/atomic"

	"broker/core"
)

// Principal is a person or program with rights. It keeps its identity when the settings are read again: who holds it
// sees the new rights.
type Principal struct {
	name   string
	grants atomic.Pointer[[]Grant]
}

// Everyone may do everything: the principal of all clients where none is configured.
var Everyone = newPrincipal("", []Grant{{Role: Admin}})

// Names of clients that are no principals of the settings. No principal may have one of them: the audit log tells them apart, and
// operations, pages and idempotency keys belong to a name.
const (
	NameAnonymous  = "anonymous" // has shown no credentials
	passwordSuffix = ".password" // of a port: http.password, faktory.password
)

// IsReserved reports whether no principal of the settings may have a name.
func IsReserved(name string) bool {
	protocol, found := strings.CutSuffix(name, passwordSuffix)
	return name == "" || name == NameAnonymous ||
		found && slices.ContainsFunc(core.Protocols[:], func(p core.Protocol) bool { return p.String() == protocol })
}

// passwordHolders are the principals of PasswordOf.
var passwordHolders = func() (all [len(core.Protocols)]*Principal) {
	for _, p := range core.Protocols {
		all[p] = newPrincipal(p.String()+passwordSuffix, []Grant{{Role: Admin}})
	}
	return all
}()

// PasswordOf is the principal of clients that know the password of a protocol's port, which gives all rights.
func PasswordOf(p core.Protocol) *Principal { return passwordHolders[p] }

// Nobody may do nothing: the principal of a client that has shown no credentials where principals are configured.
var Nobody = newPrincipal("", nil)

func newPrincipal(name string, grants []Grant) *Principal {
	p := &Principal{name: name}
	p.grants.Store(&grants)
	return p
}

// Name of the principal; empty for Everyone and Nobody.
func (p *Principal) Name() string { return p.name }

// May reports whether the principal has a role for a queue.
func (p *Principal) May(r Role, queue string) bool {
	for _, g := range *p.grants.Load() {
		if !g.Role.includes(r) {
			continue
		}
		if g.Queues == nil || slices.ContainsFunc(g.Queues, func(pattern string) bool { return core.MatchQueue(pattern, queue) }) {
			return true
		}
	}
	return false
}

// MayAll reports whether the principal has a role for every queue and for what belongs to no queue.
func (p *Principal) MayAll(r Role) bool {
	for _, g := range *p.grants.Load() {
		if g.Role.includes(r) && g.Queues == nil {
			return true
		}
	}
	return false
}

// Patterns are those of the queues for which the principal has a role; all: every queue.
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
