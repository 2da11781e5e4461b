package engine

import "broker/core"

// SyncLatency is how long syncs of the store's log took: the disk's share of a commit. Empty without a store.
func (e *Engine) SyncLatency() core.Latency {
	if e.store == nil {
		return core.Latency{}
	}
	return e.store.SyncLatency()
}
