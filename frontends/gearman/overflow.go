package gearman

// Overflow is what a connection is told that there is no room for: a packet, for nobody has said yet whether text or
// binary will be spoken, and programs are many more than people.
func (f *Frontend) Overflow() []byte {
	return appendPacket(nil, errorRes, codeQueue, "Too many connections")
}
