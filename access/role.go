package access

import (
	"fmt"
	"slices"
	"strings"
)

// Role is a set of operations.
type Role uint8

// The roles; see the package comment.
const (
	Read Role = iota
	Produce
	Consume
	Operate
	Admin
)

var roleNames = [...]string{"read", "produce", "consume", "operate", "admin"}

func (r Role) String() string { return roleNames[r] }

// parseRole finds a role by its name.
func parseRole(name string) (Role, bool) {
	i := slices.Index(roleNames[:], name)
	return Role(max(i, 0)), i >= 0
}

// includes reports whether r contains all rights of other.
func (r Role) includes(other Role) bool {
	return r == other || r == Admin || r == Operate && other == Read
}

// Grant is a role for the queues whose names match one of the patterns. Without patterns it covers every queue, and
// requests that belong to no queue.
type Grant struct {
	Role   Role
	Queues []string
}

// ParseGrant reads "role" or "role:pattern,pattern".
func ParseGrant(text string) (Grant, error) {
	name, patterns, limited := strings.Cut(text, ":")
	role, ok := parseRole(name)
	if !ok {
		return Grant{}, fmt.Errorf("%q is not one of %s", name, strings.Join(roleNames[:], ", "))
	}
	if !limited {
		return Grant{Role: role}, nil
	}
	if role == Admin {
		return Grant{}, fmt.Errorf("admin cannot be limited to queues")
	}
	g := Grant{Role: role, Queues: strings.Split(patterns, ",")}
	if slices.Contains(g.Queues, "") {
		return Grant{}, fmt.Errorf("%q has an empty queue pattern", text)
	}
	return g, nil
}
