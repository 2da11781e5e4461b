package core

// Atomic applies operations together or not at all, in one commit. All are checked first, in order, against the state
// before; the conditions and rules of each are those of its own description. Reply: Accepted, with a reply for each
// operation in Replies, in their order; or Failed with the error of the first that is refused, whose place is Index.
//
// It may hold Submit, Update, Move, AddDependencies, RemoveDependencies, TransferLease, Cancel, Enqueue, Bury, Complete,
// Fail, Report, Release, LeaseJob, WriteMeta and WriteDocuments, at most MaxAtomic of them. Several Updates and Reports may be about one job; an
// operation of another kind must be the last that names a job, be it as a dependency or parent, else it is refused with
// ErrInvalid. A submission may take the id or the unique key of a job that the list cancels before.
type Atomic struct {
	changing
	Tag uint64
	Ops []Op
}

// TagOf implements Op.
func (o *Atomic) TagOf() uint64 { return o.Tag }
