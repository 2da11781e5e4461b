package eventloop

import (
	"math/bits"
	"sync"
)

// keepInput is how much memory a conn without unread input keeps for the next, in bytes. Small, since most of ten
// thousand idle connections would never need it.
const keepInput = 1 << 10

// inbuf is what a session has left unread.
type inbuf struct {
	b   []byte
	off int // b[:off] is used
}

func (i *inbuf) unread() []byte { return i.b[i.off:] }

func (i *inbuf) len() int { return len(i.b) - i.off }

// used drops the first n bytes. They are moved out of the way by hold only, so that many small uses of a long input
// cost nothing.
func (i *inbuf) used(n int) {
	i.off += n
	if i.off == len(i.b) {
		i.clear()
	}
}

func (i *inbuf) clear() {
	i.off = 0
	if cap(i.b) > keepInput {
		giveBlock(i.b)
		i.b = nil
		return
	}
	i.b = i.b[:0]
}

// hold appends a copy of p. Memory grows with what has come, never with what a header has announced, and at most to
// twice of it.
func (i *inbuf) hold(p []byte) {
	if i.off > 0 && i.off >= i.len() {
		i.b = i.b[:copy(i.b, i.b[i.off:])]
		i.off = 0
	}
	if need := i.len() + len(p); need > keepInput && i.off+need > cap(i.b) {
		larger := takeBlock(need)
		larger = append(larger, i.unread()...)
		giveBlock(i.b)
		i.b, i.off = larger, 0
	}
	i.b = append(i.b, p...)
}

// Blocks of input are used again: a large message passes through several while it comes in, and memory that is fresh from
// the system costs more than the copy. The collector takes what nobody has used for a while.
const (
	leastBlock = 12 // as a power of two
	mostBlock  = 24 // larger ones are left to the collector
)

var blocks [mostBlock + 1]sync.Pool // of *[]byte, by the power of two that is their size

// takeBlock is empty and has room for n bytes.
func takeBlock(n int) []byte {
	class := max(leastBlock, bits.Len(uint(n-1))) //nolint:gosec // n is more than keepInput
	if class > mostBlock {
		return make([]byte, 0, 1<<class)
	}
	if b, ok := blocks[class].Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, 1<<class)
}

// giveBlock takes back what takeBlock gave; other memory is left alone.
func giveBlock(b []byte) {
	class := bits.Len(uint(cap(b))) - 1
	if class >= leastBlock && class <= mostBlock && cap(b) == 1<<class {
		blocks[class].Put(&b)
	}
}
