package machine

// usualUnstored limits the bytes that are admitted and not on disk yet, unless the options do: a slow disk must not fill the memory
// with the jobs of clients that do not wait for replies.
const usualUnstored = 1 << 30

func (m *Machine) maxUnstored() int { return m.opts.MaxUnstored }

// maxOpen limits the open batch, far below what a commit may hold: beyond it every change is refused until the batch is sealed.
func (m *Machine) maxOpen() int { return 3 * m.maxUnstored() }
