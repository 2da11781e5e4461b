//go:build !linux

package eventloop

// peerOf takes every peer for present, because only Linux tells without a read: a broken socket is noticed when it is
// used again.
func peerOf(int) peerState { return peerThere }
