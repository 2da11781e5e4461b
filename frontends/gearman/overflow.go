package gearman

import "broker/frontends/gearman/packet"

// Overflow is the reply to a connection above the connection limit. It is a packet, because most clients speak the binary
// protocol and this client has not sent anything yet.
func (f *Frontend) Overflow() []byte {
	return appendPacket(nil, packet.Error, codeQueue, "Too many connections")
}
