package machine

import (
	"slices"

	"broker/core"
)

// read is a job that was leased with Late and whose body is being read.
type read struct {
	tag   uint64 // of the lease
	seq   uint64
	epoch uint32
}

// Deliver completes a Reading reply: an Assigned with the whole job, or another reply instead. If the client is gone or has
// cancelled the lease, there is no reply; another client may have the job by then.
func (m *Machine) Deliver(now core.Instant, id core.ClientID, r core.Reply) {
	m.setNow(now)
	c := m.client(id)
	if c == nil {
		return
	}
	n := len(c.reads)
	c.reads = slices.DeleteFunc(c.reads, func(d read) bool {
		return d.tag == r.Tag && d.seq == r.Seq && (r.Kind != core.Assigned || d.epoch == r.Lease.Epoch)
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
