package machine

import "broker/core"

// Work describes the data that a reply still needs from the store. The machine reads nothing: its caller completes the reply,
// outside the lock.
type Work struct {
	Reply     int // index among the client's replies; see Machine.Work
	Needs     Needs
	Queue     string              // LeasedJob, LeasedJobLater: queue of the job, which the store may not know
	Fails     uint32              // FailureOfDead: how many failures the reply may show
	Find      *core.Find          // FoundByRecords
	Documents *core.ReadDocuments // StoredDocuments
}

// Needs says which data a reply needs.
type Needs uint8

// The data that a reply can need from the store.
const (
	LeasedJob       Needs = iota // its payload, its last failure, or both
	LeasedJobLater               // the same; Deliver completes the reply, since the client accepts a delay
	KeptOutcome                  // of a job that ended before
	FailureOfDead                // the failure that made the job dead
	InspectedJob                 // everything
	InspectedBrief               // its timeline only
	ListedJobs                   // everything
	ListedHeads                  // no bodies, failures and outcomes
	FoundJobs                    // no bodies and outcomes
	FoundByRecords               // the jobs themselves: only their records show whether they match
	StoredDocuments              // the documents
)

// replyWith is reply for a reply that needs data from the store.
func (m *Machine) replyWith(c *client, r core.Reply, w Work) {
	m.reply(c, r)
	m.lastNeeds(c, w)
}

// lastNeeds records what the last reply of a client needs from the store.
func (m *Machine) lastNeeds(c *client, w Work) {
	w.Reply = len(c.replies) - 1
	c.work = append(c.work, w)
}

// Work returns the data needed by the replies that the next Take returns.
func (m *Machine) Work(id core.ClientID) []Work {
	if c := m.client(id); c != nil {
		return c.work
	}
	return nil
}
