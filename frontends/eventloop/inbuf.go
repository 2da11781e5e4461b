package eventloop

import "sync"

// keepInput is the size of the buffer that a conn without unread input keeps. It is small, because there may be ten
// thousand idle connections.
const keepInput = 1 << 10

// inbuf holds the input that a session has not consumed.
type inbuf struct {
	b   []byte
	off int // b[:off] is consumed
}

func (i *inbuf) unread() []byte { return i.b[i.off:] }

func (i *inbuf) len() int { return len(i.b) - i.off }

// consume drops the first n bytes. Only append moves the rest, so that consuming a long input in small steps is cheap.
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

// append appends a copy of p. The buffer grows with the bytes received, never with a length that a header announces,
// and by at most half of its size.
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

// Blocks of input are reused: a large message passes through several while it is received, and fresh memory from the
// system costs more than the copy. Block sizes are powers of two and the midpoints between them.
const (
	leastBlock = 4 << 10
	freeSizes  = 24      // up to 12 MiB; larger blocks are left to the garbage collector
	freeBytes  = 8 << 20 // limit of unused blocks; more are left to the garbage collector
)

// freeBlocks are the unused blocks.
var freeBlocks struct {
	sync.Mutex // guards the fields below
	bytes      int
	bySize     [freeSizes][][]byte
}

// blockOf returns the smallest block size that holds n bytes, and the index of that size.
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

// allocBlock returns an empty block with room for n bytes.
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

// freeBlock takes a block back. It ignores memory that is not from allocBlock.
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
