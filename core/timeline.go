package core

import (
	"cmp"
	"slices"
)

// Timeline is the history of a job. It begins with the first unusual event, so a job that is submitted, leased and done
// has no timeline, unless Job.Timeline requests one. At most Length entries are kept: the first First entries and the
// most recent ones.
type Timeline struct {
	Entries       []TimelineEntry // in order
	Count         int             // entries so far, including those in the middle that are missing in Entries
	First, Length int
}

// TimelineEntry is something that happened to a job. The fields named like fields of Event mean
// the same.
type TimelineEntry struct {
	Number   uint32 // of all entries of the job, from 0
	Kind     EventKind
	At       Instant
	Protocol Protocol // of the worker, or of the client that caused it
	Worker   string   // id or name of the worker or client
	Address  string   // of its connection
	Queue    string   // Submitted, Moved: the queue that the job came to
	Detail   string   // as Event.Detail; Failed: the type of the failure
	Group    string   // Failed: the group of the failure
	Text     string   // Failed, Cancelled: the message, cut to MaxTimelineText
	Version  string   // Leased, and the events that end a lease: Lease.Version
}

// MaxTimeline is the largest Job.Timeline, MaxTimelineText the size limit of an entry's text.
const (
	MaxTimeline     = 1000
	MaxTimelineText = 1 << 10
)

// TimelineShape returns First and Length of a job's timeline; requested is Job.Timeline.
func TimelineShape(requested uint16) (first, length int) {
	if requested == 0 {
		return 20, 40
	}
	return 1, max(2, min(int(requested), MaxTimeline))
}

// Keeps reports whether the entry with this number is kept.
func (t *Timeline) Keeps(number uint32) bool {
	n := int(number)
	return n < t.Count && (n < t.First || n >= t.Count-(t.Length-t.First))
}

// Trim sorts the entries and removes duplicates and entries that are not kept. Of two entries with the same number, the
// first one stays.
func (t *Timeline) Trim() {
	slices.SortStableFunc(t.Entries, func(a, b TimelineEntry) int { return cmp.Compare(a.Number, b.Number) })
	t.Entries = slices.CompactFunc(t.Entries, func(a, b TimelineEntry) bool { return a.Number == b.Number })
	t.Entries = slices.DeleteFunc(t.Entries, func(e TimelineEntry) bool { return !t.Keeps(e.Number) })
}
