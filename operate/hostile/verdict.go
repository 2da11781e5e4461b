package hostile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"broker/core"
)

// Finding is what workers did with one job.
type Finding struct {
	Subject
	Detail string `json:"detail"`
}

// Verdict says what workers did with their jobs, except what a fault explains. The first four lists are mistakes.
type Verdict struct {
	Delivered      int       `json:"delivered"`       // jobs that workers have got, as far as they were watched
	Running        int       `json:"running"`         // of them, those that a worker has now
	Unwatched      int       `json:"unwatched"`       // jobs that came while a million others were watched
	Different      []Finding `json:"different"`       // ended twice, with different results
	Late           []Finding `json:"late"`            // acknowledged after the lease was lost
	NeverAcked     []Finding `json:"never_acked"`     // of no delivery has a worker said how it ended
	Forgotten      []Finding `json:"forgotten"`       // of one delivery no worker has said how it ended, but of another
	CompletedAgain []Finding `json:"completed_again"` // with the same result, or in a protocol without results
}

// Passed reports whether workers made no mistake.
func (v *Verdict) Passed() bool {
	return len(v.Different)+len(v.Late)+len(v.NeverAcked)+len(v.Forgotten) == 0
}

// printed is how many findings of a kind the text shows.
const printed = 20

// String is the verdict in lines, for people.
func (v *Verdict) String() string {
	var b strings.Builder
	word := "passed"
	if !v.Passed() {
		word = "FAILED"
	}
	fmt.Fprintf(&b, "verdict: %s; jobs delivered: %d\n", word, v.Delivered)
	for _, kind := range []struct {
		title string
		list  []Finding
	}{
		{"ended twice with different results", v.Different},
		{"acknowledged after their lease was lost", v.Late},
		{"never acknowledged", v.NeverAcked},
		{"taken and forgotten", v.Forgotten},
		{"completed more than once, as a broker may cause; look whether their effects happened once", v.CompletedAgain},
	} {
		if len(kind.list) > 0 {
			fmt.Fprintf(&b, "%d %s:\n", len(kind.list), kind.title)
		}
		for _, f := range kind.list[:min(len(kind.list), printed)] {
			fmt.Fprintf(&b, "  %s: %s\n", f.Subject, f.Detail)
		}
		if more := len(kind.list) - printed; more > 0 {
			fmt.Fprintf(&b, "  and %d more\n", more)
		}
	}
	if v.Unwatched > 0 {
		fmt.Fprintf(&b, "jobs that were not watched: %d\n", v.Unwatched)
	}
	return b.String()
}

// verdict judges. What a worker has while a broker runs is no mistake yet; without one it is.
func (j *judge) verdict() *Verdict {
	inspect := j.inspect.Load()
	v := &Verdict{
		Different: []Finding{}, Late: []Finding{}, NeverAcked: []Finding{}, Forgotten: []Finding{},
		CompletedAgain: []Finding{},
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	v.Delivered, v.Unwatched = j.flawless, j.unwatched
	for _, h := range j.jobs {
		if h.count == 0 {
			continue
		}
		v.Delivered++
		v.add(h, inspect)
	}
	for _, list := range [][]Finding{v.Different, v.Late, v.NeverAcked, v.Forgotten, v.CompletedAgain} {
		slices.SortFunc(list, func(a, b Finding) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	return v
}

// add adds the findings about a job. leasedAt returns since when a job is leased, zero if it is not.
func (v *Verdict) add(h *history, leasedAt *func(seq uint64) core.Instant) {
	silence := h.forgotten
	for i := range h.open {
		switch d := &h.open[i]; {
		case d.forgives():
		case !d.lapsed && leasedAt != nil && (*leasedAt)(h.Seq) == d.leasedAt:
			v.Running++
		default:
			silence = silent
		}
	}
	found := func(list *[]Finding, detail string) {
		if detail != "" {
			*list = append(*list, Finding{h.Subject, fmt.Sprintf("%s; deliveries: %d", detail, h.count)})
		}
	}
	found(&v.Different, h.different)
	found(&v.Late, h.late)
	if h.said {
		found(&v.Forgotten, silence)
	} else {
		found(&v.NeverAcked, silence)
	}
	if h.completed > 1 && h.different == "" {
		found(&v.CompletedAgain, fmt.Sprintf("completed %d times", h.completed))
	}
}
