package core

// State is the state of a job. Stored; never renumbered.
type State uint8

// The states; package core draws how they follow each other. A job that does not exist is Gone.
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

// States lists the states of existing jobs.
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

// moves has the allowed transitions as sets with a bit for each state. Every unfinished state allows Done and Dead,
// because a late completion counts and a client may kill a job. A dead job can be put back.
var moves = [...]uint16{
	Gone:      anyOf(Scheduled, Blocked, Ready, Leased, Retrying, Done, Dead), // the last three on recovery
	Scheduled: anyOf(Ready, Blocked, Retrying, Done, Dead, Gone),
	Blocked:   anyOf(Ready, Scheduled, Done, Dead, Gone),
	Ready:     anyOf(Scheduled, Blocked, Leased, Retrying, Done, Dead, Gone),
	Leased:    anyOf(Ready, Retrying, Done, Dead, Gone),
	Retrying:  anyOf(Ready, Retrying, Done, Dead, Gone),
	Done:      anyOf(Gone),
	Dead:      anyOf(Ready, Blocked, Gone),
}

func anyOf(states ...State) (set uint16) {
	for _, s := range states {
		set |= 1 << s
	}
	return set
}

// CanMove reports whether a job in state s may change to state to.
func (s State) CanMove(to State) bool { return moves[int(s)%len(moves)]>>(int(to)%len(moves))&1 != 0 }

// Unfinished reports whether a job in this state may still be worked on.
func (s State) Unfinished() bool {
	switch s {
	case Scheduled, Blocked, Ready, Leased, Retrying:
		return true
	case Gone, Done, Dead:
		return false
	}
	return false
}
