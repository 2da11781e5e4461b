package archive

import "broker/core"

// Proof says whether a state is that of the requested moment. It is exact if the archive shows that no commit up to
// the moment is missing: by the next commit, which was made later, or by a base copy that continues with it. Of the
// newest state no more is required than that the archive shows no later commit.
type Proof struct {
	Exact bool

	// From is the last commit in the state. Without Exact, the archive lacks the commits after it, up to To. Zero:
	// the archive ends there, so it does not show whether there were more.
	From, To core.Instant
}

// prove examines what follows the entries that a walk has read: the rest of its timeline, and the later timelines.
func (r *Restored) prove(w *walk, later []*timeline, moment core.Instant) Proof {
	p := Proof{Exact: w.ended, From: r.At}
	if p.Exact {
		return p
	}
	gap := func(to core.Instant) Proof {
		if to <= moment && moment != endOfTime { // a damaged copy
			to = moment
		}
		return Proof{From: r.At, To: to}
	}
	for _, b := range w.t.bases {
		if b.number > r.Number {
			return gap(b.at)
		}
	}
	for _, t := range later {
		first, at := t.start()
		switch {
		case first == 0: // it has no files yet
		case first == r.Number+1 && moment < t.began:
			p.Exact = true
			return p
		case first > r.Number+1:
			return gap(at)
		default: // of a store that was restored: what the former one did last is not known; or its copies are damaged
			return gap(t.began)
		}
	}
	if len(w.notes) > 0 && moment != endOfTime {
		return gap(moment)
	}
	p.Exact = moment == endOfTime && len(w.notes) == 0
	return p
}

// start returns the number of the first entry after the first base copy of a timeline, and the time of the copy.
// Without a copy, because it is not complete or is missing, they come from the first segment. Zero: there are no
// files.
func (t *timeline) start() (first uint64, at core.Instant) {
	switch {
	case len(t.bases) > 0:
		return t.bases[0].number + 1, t.bases[0].at
	case len(t.segs) > 0:
		return t.segs[0].first, t.began
	}
	return 0, 0
}
