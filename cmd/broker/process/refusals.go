package process

// refusals counts how often in a row a leader has refused a link. A leader whose build speaks no operations, or others,
// refuses each time. One that does not lead any more refuses once, and then another one leads, or the same one again.
type refusals struct {
	leader string
	n      int
}

// refusalsOfBuild is the number in a row from which on a leader's build is the reason.
const refusalsOfBuild = 2

// by counts a refusal. It returns true once: when it is known that this leader has no links.
func (r *refusals) by(leader string) bool {
	r.leader = leader
	r.n++
	return r.n == refusalsOfBuild
}

// leaderChanged is called when the leader has changed since the last refusal, maybe to the same node. What is known of
// a node's build stays.
func (r *refusals) leaderChanged() {
	if r.n < refusalsOfBuild {
		r.n = 0
	}
}

// forgetOthers forgets the refusals of another leader than this. It reports whether there were any.
func (r *refusals) forgetOthers(leader string) bool {
	if r.n == 0 || r.leader == leader {
		return false
	}
	*r = refusals{}
	return true
}
