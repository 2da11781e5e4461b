package core

// Atomic applies all operations in one commit, or none of them. It first checks every operation, in order, against the state
// before the list; each operation has its own conditions and rules. Reply: Accepted, with the replies of the operations in
// Replies, in order; or Failed with the error of the first refused operation; Index is its position in the list.
//
// It may hold Submit, Update, Move, TransferLease, Cancel, Enqueue, Bury, Complete, Fail,
// Report, Annotate, Release, LeaseJob, WriteMeta and WriteDocuments, at most MaxAtomic of them. Several Updates, Reports and
// Annotates may name the same job; an operation of another kind must be the last one in the list that names a job, even as a
// dependency or parent. Otherwise the list is refused with ErrInvalid. A submission may reuse the id or unique key of a job
// that the list cancels before it.
type Atomic struct {
	changing
	Tag uint64
	Ops []Op
}

// TagOf implements Op.
func (o *Atomic) TagOf() uint64 { return o.Tag }
