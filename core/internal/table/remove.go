package table

// DropIndexes removes a job from the indexes. The name of its type and its unique key must already be free.
func (t *Table) DropIndexes(h uint32, e *Entry) {
	if len(t.Tags.first) > 0 {
		t.dropTags(h)
	}
	t.Timers.Remove(&e.StateTimer)
	t.Timers.Remove(&e.ExpiryTimer)
	if e.Has(HasOptional) {
		t.Timers.Remove(&t.optionals[h].StartTimer)
		delete(t.optionals, h)
	}
	if e.ID != (Digest{}) {
		delete(t.byID, e.ID)
	}
	t.bySeq.drop(e.Seq)
	if e.Has(HasTransient) {
		t.DropCollected(t.transients[h])
		delete(t.transients, h)
	}
	t.SetFirstFail(h, e, 0)
	if e.Has(Traced) {
		delete(t.traces, h)
	}
	if e.Has(TallyMoves | TallyFirstLease) {
		delete(t.tallies, h)
	}
	t.dropPayload(h)
	t.Unlist(h, e)
	t.SetVersion(h, "")
}

// Release frees the handle of a job that is gone, and reports whether it was the last job.
func (t *Table) Release(h uint32) bool {
	if t.slab.release(h); t.Live == 0 {
		t.shrinkMaps()
		return true
	}
	return false
}
