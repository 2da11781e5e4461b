package machine

import (
	"slices"

	"broker/core"
)

// holdQueue is HoldQueue: the client holds a queue, or frees it.
func (m *Machine) holdQueue(c *client, op *core.HoldQueue) {
	if !op.Free {
		n, q := m.queueNamed(op.Queue)
		q.holders++
		c.holding = append(c.holding, n)
		return
	}
	if i := slices.Index(c.holding, m.table.QueueNumber(op.Queue)); i >= 0 {
		m.free(c.holding[i])
		c.holding = slices.Delete(c.holding, i, i+1)
	}
}

// releaseHeldQueues frees the queues that a leaving client holds.
func (m *Machine) releaseHeldQueues(c *client) {
	for _, n := range c.holding {
		m.free(n)
	}
	c.holding = nil
}

// free ends the hold of a client on a queue.
func (m *Machine) free(n uint32) {
	m.queues[n].holders--
	m.dropIdle(n)
}
