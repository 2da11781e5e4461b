package machine

import "cmp"

// usualUnstored is the default limit of bytes that are admitted and not on disk yet. With a slow disk, jobs of clients that do not
// wait for replies must not fill the memory.
const usualUnstored = 1 << 30

// withDefaults replaces zero by the default.
func (o Options) withDefaults() Options {
	o.MaxUnstored = cmp.Or(o.MaxUnstored, usualUnstored)
	return o
}

// lacksRoom reports whether the data of stored jobs must not grow.
func (m *Machine) lacksRoom() bool { return m.refuse != nil || m.unstored() > m.opts.MaxUnstored }

// maxOpen is the size limit of the open batch. Beyond it, every change is refused until the batch is sealed. It is far below
// the maximum size of a commit.
func (m *Machine) maxOpen() int { return 3 * m.opts.MaxUnstored }
