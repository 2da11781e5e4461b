package eventloop

import "golang.org/x/sys/unix"

// peerOf polls the state of a socket's peer without waiting.
func peerOf(fd int) peerState {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(p, 0)
	switch events := p[0].Revents; {
	case err != nil || n == 0:
		return peerThere
	case events&(unix.POLLERR|unix.POLLNVAL) != 0:
		return peerBroken
	case events&unix.POLLHUP != 0:
		return peerClosed
	}
	return peerEnded
}
