package access

import (
	"net"

	"broker/core"
)

// Change is an entry for the audit log: an operator's change through a wire protocol.
type Change struct {
	Who      string // name of the principal; empty: it has none
	Address  string
	Protocol core.Protocol
	Action   string // such as queue.pause
	Target   string
	Detail   string
}

// Audit receives the changes for the audit log; nil: there is none. It is called from any goroutine.
type Audit func(Change)

// Note adds a change that a client of the guard has made over a connection: it fills in who, from where and by which
// protocol. It takes the connection instead of an address, because RemoteAddr may allocate.
func (a Audit) Note(g *Guard, client core.ClientID, conn interface{ RemoteAddr() net.Addr }, c Change) {
	if a == nil {
		return
	}
	c.Who, c.Protocol = g.PrincipalOf(client).Name(), g.protocol
	if from := conn.RemoteAddr(); from != nil {
		c.Address = from.String()
	}
	a(c)
}
