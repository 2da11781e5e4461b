package table

// HoldNamed adds a lease to the list of its worker.
func (t *Table) HoldNamed(h uint32, e *Entry, name string) {
	e.Holder = t.Workers.acquire(name)
	for int(e.Holder) >= len(t.leases) {
		t.leases = append(t.leases, nil)
	}
	e.HeldAt = uint32(len(t.leases[e.Holder]))
	t.leases[e.Holder] = append(t.leases[e.Holder], h)
}

// DropNamed removes a lease from the list of its worker.
func (t *Table) DropNamed(e *Entry) {
	list := &t.leases[e.Holder]
	t.SwapOut(list, e.HeldAt)
	if t.Workers.release(e.Holder) && cap(*list) > 64 {
		*list = nil
	}
}

// SwapOut removes the job at an index of a list of held jobs; the last one takes its place.
func (t *Table) SwapOut(list *[]uint32, at uint32) {
	held := *list
	last := held[len(held)-1]
	held[at] = last
	t.At(last).HeldAt = at
	*list = held[:len(held)-1]
}

// LeasesOf are the leases of the worker with a number, which may not be in use.
func (t *Table) LeasesOf(worker uint32) []uint32 { return t.leases[worker] }
