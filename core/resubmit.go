package core

// Resubmit submits a copy of an ended job that is kept, to run it again. The copy has the same queue, body, type, tags, priority, unique
// key and policy. It gets a new ID from the core, and has no links to other jobs, no batch, no schedule and no ReadyAt. Its other times
// are as far from now as the original's times were from its submission. Job.RerunOf names the original.
//
// Reply: Submitted as after Submit, or Failed as for Submit, and with ErrNotFound, ErrConflict, or ErrInvalid: the job has not ended,
// or its body is damaged. For a job that still runs, use Rerun.
type Resubmit struct {
	changing
	Tag uint64
	Ref Ref
	If  Condition
}

// TagOf implements Op.
func (o *Resubmit) TagOf() uint64 { return o.Tag }
