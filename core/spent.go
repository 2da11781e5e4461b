package core

import "time"

// MoveSpent sets what happens to the jobs of a queue that were leased often and are not done: instead of one lease more, for a worker of
// any protocol, they move to another queue. There they keep their counts, and JobInfo.MovedFrom names the queue. Jobs with MaxAttempts
// or LeaseEndFail and ephemeral jobs stay. The queue need not exist. Reply: Accepted, or Failed with ErrInvalid.
type MoveSpent struct {
	changing
	Tag   uint64
	Queue string
	Rule  SpentRule // zero: none
}

// SpentRule says which jobs move, and where.
type SpentRule struct {
	Leases uint32 `json:"leases"` // in this queue, at least 1
	To     string `json:"to"`     // another queue

	// ExpiresIn is the time from the submission, or with FromMove from the move, until a job that expires expires in the other queue; zero:
	// as before. It does not apply to a job whose outcome is kept.
	ExpiresIn time.Duration `json:"expires_in,omitempty"`
	FromMove  bool          `json:"from_move,omitempty"`
}

// TagOf implements Op.
func (o *MoveSpent) TagOf() uint64 { return o.Tag }

// IsValid reports whether the rule may be set.
func (o *MoveSpent) IsValid() bool {
	r := &o.Rule
	return o.Queue != "" && len(o.Queue) <= MaxQueueName && (*r == SpentRule{} ||
		r.Leases > 0 && r.To != "" && r.To != o.Queue && len(r.To) <= MaxQueueName && r.ExpiresIn >= 0)
}
