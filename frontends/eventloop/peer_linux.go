package eventloop

import (
	"syscall"
	"unsafe"
)

// Events of poll(2).
const (
	pollErr   = 0x8
	pollHup   = 0x10
	pollNval  = 0x20
	pollRdHup = 0x2000
)

// peerOf polls the state of a socket's peer without waiting.
func peerOf(fd int) peerState {
	p := struct {
		fd              int32
		events, revents int16
	}{fd: int32(fd), events: pollRdHup} //nolint:gosec // a descriptor
	var now syscall.Timespec
	n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL,
		uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0) //nolint:gosec // read during the call only
	switch {
	case errno != 0 || n == 0:
		return peerThere
	case p.revents&(pollErr|pollNval) != 0:
		return peerBroken
	case p.revents&pollHup != 0:
		return peerClosed
	}
	return peerEnded
}
