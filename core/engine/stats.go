package engine

import "broker/core"

// SyncLatency tells how long the syncs of the store's log took, the machine's share of a commit. Empty without a store.
func (e *Engine) SyncLatency() core.Latency {
	if e.store == nil {
		return core.Latency{}
	}
	return e.store.SyncLatency()
}
