package core

// Dependents says what a cancel does about jobs that wait for the cancelled one.
type Dependents uint8

// DependentsBreak: they stay Blocked and are marked broken. DependentsRefuse: nothing is cancelled, unless all of them
// are cancelled together.
const (
	DependentsBreak Dependents = iota
	DependentsRefuse
)

// Cancel removes a job in any state, and those of Also with it; watchers get Ended with Cause Cancelled. Names in Also that
// nobody has are passed over, and If is asked of Ref alone. Reply: Accepted, with the number of jobs removed in N, or
// Failed with ErrNotFound, ErrConflict or ErrHasDependents.
type Cancel struct {
	changing
	Tag        uint64
	Ref        Ref
	If         Condition
	Dependents Dependents
	Also       []Ref
}

// Enqueue makes a scheduled, retrying, blocked or dead job ready now. Reply: Accepted, or Failed with ErrNotFound,
// ErrConflict, or ErrInvalid in other states.
type Enqueue struct {
	changing
	Tag uint64
	Ref Ref
	If  Condition
}

// Bury moves an unfinished job to the dead set, with a new age; a dead one only gets the new age. Reply as Enqueue.
type Bury struct {
	changing
	Tag uint64
	Ref Ref
	If  Condition
}

// TagOf implements Op.
func (o *Cancel) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (o *Enqueue) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (o *Bury) TagOf() uint64 { return o.Tag }
