package machine

import "broker/core"

// counts are what happened in a queue; see core.QueueCounts. They have room for the protocols that the queue has seen, usually one, since
// there may be a million queues.
type counts struct {
	by                      []protocolCounts
	expired, released, dead uint64
}

type protocolCounts struct {
	protocol                                           core.Protocol
	submitted, leased, done, failed, cancelled, paused uint64
}

// of are the counts of a protocol.
func (x *counts) of(p core.Protocol) *protocolCounts {
	for i := range x.by {
		if x.by[i].protocol == p {
			return &x.by[i]
		}
	}
	x.by = append(x.by, protocolCounts{protocol: p})
	return &x.by[len(x.by)-1]
}

func (x *counts) all() core.QueueCounts {
	all := core.QueueCounts{Expired: x.expired, Released: x.released, Dead: x.dead}
	for _, c := range x.by {
		p := c.protocol
		all.Submitted[p], all.Leased[p], all.Done[p] = c.submitted, c.leased, c.done
		all.Failed[p], all.Cancelled[p], all.Paused[p] = c.failed, c.cancelled, c.paused
	}
	return all
}
