package gearman

// Overflow is the refusal of a connection above the connection limit. It is a packet: the client has not sent anything yet, and
// most clients speak the binary protocol.
func (f *Frontend) Overflow() []byte {
	return appendPacket(nil, errorRes, codeQueue, "Too many connections")
}
