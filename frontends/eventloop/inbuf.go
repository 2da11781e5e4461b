package eventloop

import "sync"

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
func (i *inbuf) consume(n int) {
	i.off += n
	if i.off == len(i.b) {
		i.clear()
	}
}

func (i *inbuf) clear() {
	i.off = 0
	if cap(i.b) > keepInput {
		freeBlock(i.b)
		i.b = nil
		return
	}
	i.b = i.b[:0]
}

// hold appends a copy of p. Memory grows with what has come, never with what a header has announced, and at most to
// half as much again.
func (i *inbuf) append(p []byte) {
	if i.off > 0 && i.off >= i.len() {
		i.b = i.b[:copy(i.b, i.b[i.off:])]
		i.off = 0
	}
	if need := i.len() + len(p); need > keepInput && i.off+need > cap(i.b) {
		larger := allocBlock(need)
		larger = append(larger, i.unread()...)
		freeBlock(i.b)
		i.b, i.off = larger, 0
	}
	i.b = append(i.b, p...)
}

// Blocks of input are used again: a large message passes through several while it comes in, and memory that is fresh from
// the system costs more than the copy. Their sizes are powers of two and the middles between them.
const (
	leastBlock = 4 << 10
	freeSizes  = 24      // up to 12 MiB; larger ones are left to the collector
	freeBytes  = 8 << 20 // of blocks that nobody uses; what is more is left to the collector too
)

// freeBlocks are those that nobody uses.
var freeBlocks struct {
	sync.Mutex // guards the rest
	bytes      int
	bySize     [freeSizes][][]byte
}

// blockOf is the least size of a block that has room for n bytes, and the place of that size.
func blockOf(n int) (size, place int) {
	for size = leastBlock; size < n; place++ {
		if place%2 == 0 {
			size += size / 2
		} else {
			size += size / 3
		}
	}
	return size, place
}

// allocBlock is empty and has room for n bytes.
func allocBlock(n int) []byte {
	size, place := blockOf(n)
	if place < freeSizes {
		freeBlocks.Lock()
		defer freeBlocks.Unlock()
		if of := freeBlocks.bySize[place]; len(of) > 0 {
			b := of[len(of)-1]
			of[len(of)-1] = nil
			freeBlocks.bySize[place], freeBlocks.bytes = of[:len(of)-1], freeBlocks.bytes-size
			return b
		}
	}
	return make([]byte, 0, size)
}

// freeBlock takes back what allocBlock gave; other memory is left alone.
func freeBlock(b []byte) {
	size, place := blockOf(cap(b))
	if size != cap(b) || place >= freeSizes {
		return
	}
	freeBlocks.Lock()
	defer freeBlocks.Unlock()
	if freeBlocks.bytes+size <= freeBytes {
		freeBlocks.bySize[place], freeBlocks.bytes = append(freeBlocks.bySize[place], b[:0]), freeBlocks.bytes+size
	}
}
