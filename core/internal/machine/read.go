package machine

import (
	"slices"

	"broker/core"
)

// read is a job that was leased to a client by a Lease with Late, and whose body somebody reads.
type read struct {
	tag   uint64 // of the lease
	seq   uint64
	epoch uint32
}

// Deliver passes on what a Reading reply announced: an Assigned with all that it needs, or what has to be told instead. A
// client that has gone, or has cancelled the lease, gets nothing; the job is somebody else's then.
func (m *Machine) Deliver(now core.Instant, id core.ClientID, r core.Reply) {
	m.setNow(now)
	c := m.client(id)
	if c == nil {
		return
	}
	n := len(c.reads)
	c.reads = slices.DeleteFunc(c.reads, func(d read) bool {
		return d.tag == r.Tag && (r.Kind != core.Assigned || d.seq == r.Seq && d.epoch == r.Lease.Epoch)
	})
	if len(c.reads) < n {
		m.reply(c, r)
	}
}

// dropReads gives back all jobs that are being read for a client, and returns the tags of their leases.
func (m *Machine) dropReads(c *client) (tags []uint64) {
	for _, d := range c.reads {
		m.revokeLease(d.seq, d.epoch)
		tags = append(tags, d.tag)
	}
	c.reads = nil
	return tags
}
