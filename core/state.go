package core

import "slices"

// State is where a job is in its life. On disk; never renumbered.
type State uint8

// The states of DESIGN.md section 2. Gone is no state that is kept: it is what a job without a trace is in.
const (
	Gone State = iota
	Scheduled
	Blocked
	Ready
	Leased
	Retrying
	Done
	Dead
)

// States lists those a kept job can be in.
var States = [...]State{Scheduled, Blocked, Ready, Leased, Retrying, Done, Dead}

func (s State) String() string {
	switch s {
	case Gone:
		return "gone"
	case Scheduled:
		return "scheduled"
	case Blocked:
		return "blocked"
	case Ready:
		return "ready"
	case Leased:
		return "leased"
	case Retrying:
		return "retrying"
	case Done:
		return "done"
	case Dead:
		return "dead"
	}
	return "unknown"
}

// moves is the table of legal moves. Done and Dead from any unfinished state: a late completion counts, and a client
// may order a job killed. From Dead a job can be put back.
var moves = [...][]State{
	Gone:      {Scheduled, Blocked, Ready, Leased, Retrying, Done, Dead}, // the last three when it comes back from disk
	Scheduled: {Ready, Blocked, Retrying, Done, Dead, Gone},
	Blocked:   {Ready, Scheduled, Done, Dead, Gone},
	Ready:     {Scheduled, Blocked, Leased, Retrying, Done, Dead, Gone},
	Leased:    {Ready, Retrying, Done, Dead, Gone},
	Retrying:  {Ready, Retrying, Done, Dead, Gone},
	Done:      {Gone},
	Dead:      {Ready, Gone},
}

// CanMove reports whether a job in state s may go to state to.
func (s State) CanMove(to State) bool { return slices.Contains(moves[s], to) }

// Unfinished reports whether a worker may still do something for a job in this state.
func (s State) Unfinished() bool {
	switch s {
	case Scheduled, Blocked, Ready, Leased, Retrying:
		return true
	case Gone, Done, Dead:
		return false
	}
	return false
}
