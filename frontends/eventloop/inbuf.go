package eventloop

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
		i.b = nil
		return
	}
	i.b = i.b[:0]
}

// hold appends a copy of p. Memory grows with what has come, never with what a header has announced.
func (i *inbuf) hold(p []byte) {
	if i.off > 0 && i.off >= i.len() {
		i.b = i.b[:copy(i.b, i.b[i.off:])]
		i.off = 0
	}
	i.b = append(i.b, p...)
}
