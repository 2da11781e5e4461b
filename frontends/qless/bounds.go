package qless

// Limits of one call. Calls run one after the other, so a long one would hold up all clients.
const (
	maxJobsOfCall  = 2000     // jobs that pop, peek and unfail handle
	maxBytesOfCall = 16 << 20 // data of the jobs that pop and peek return; one job may have more
	maxReplyBytes  = 64 << 20 // jobs in a reply
)

// ofCall limits a number of jobs; negative: no limit.
func ofCall(n int) int {
	if n < 0 {
		return maxJobsOfCall
	}
	return min(n, maxJobsOfCall)
}

// fits reports whether the data of a job has room in the reply, and takes the room. The first job always fits.
func (t *tx) fits(j *job, room *int) bool {
	if j == nil {
		return true
	}
	t.front.readData(j)
	first := *room == maxBytesOfCall
	if *room -= len(j.data); first || *room >= 0 {
		return true
	}
	*room = 0
	return false
}

// fitting returns the first jobs that have room in the reply, at most n.
func (t *tx) fitting(jids []string, n int, room *int) []string {
	for i, jid := range jids {
		if i == n || !t.fits(t.m.jobs.get(jid), room) {
			return jids[:i]
		}
	}
	return jids
}
