package core

// Resubmit submits a copy of a job that has ended and is kept, to run it again: in its queue and with its body, type, tags, priority,
// unique key and policy, but with an ID that the core makes, and without links to other jobs, a batch, a schedule, or a time before which
// it does not run. Its other times are as far from now as they were from the submission of the first one. Job.RerunOf names that one.
//
// Reply: Submitted as after Submit, or Failed as that, and with ErrNotFound, ErrConflict, or ErrInvalid: the job has not ended, or its
// body is damaged. Rerun is about a job that still runs.
type Resubmit struct {
	changing
	Tag uint64
	Ref Ref
	If  Condition
}

// TagOf implements Op.
func (o *Resubmit) TagOf() uint64 { return o.Tag }
