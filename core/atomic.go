package core

// Atomic applies all operations in one commit, or none of them. It first checks all, in order, against the state before;
// each has its own conditions and rules. Reply: Accepted, with the replies of the operations in Replies, in order; or Failed
// with the error of the first operation that is refused, whose position is Index.
//
// It may hold Submit, Update, Move, AddDependencies, RemoveDependencies, TransferLease, Cancel, Enqueue, Bury, Complete,
// Fail, Report, Annotate, Release, LeaseJob, WriteMeta and WriteDocuments, at most MaxAtomic of them. Several Updates, Reports
// and Annotates may name the same job; an operation of another kind must be the last one that names a job, also as a
// dependency or parent, otherwise it is refused with ErrInvalid. A submission may reuse the id or unique key of a job that
// the list cancels before it.
type Atomic struct {
	changing
	Tag uint64
	Ops []Op
}

// TagOf implements Op.
func (o *Atomic) TagOf() uint64 { return o.Tag }
