package importer

import (
	"cmp"
	"slices"
	"strings"
)

// Count is a number of jobs of one queue in one state.
type Count struct {
	Queue string `json:"queue"`
	State string `json:"state"`
	Jobs  int    `json:"jobs"`
}

// Row is the result for one queue and state.
type Row struct {
	Queue   string `json:"queue"`
	State   string `json:"state"`
	Before  int    `json:"before"`
	Moved   int    `json:"moved"`
	Left    int    `json:"left"`
	Refused int    `json:"refused,omitempty"` // jobs left because this broker refused them
	Reason  string `json:"reason,omitempty"`  // why jobs are left
}

// Report is the result of an import.
type Report struct {
	Rows    []Row    `json:"rows"`
	Before  int      `json:"before"`
	Moved   int      `json:"moved"`
	Left    int      `json:"left"`
	Refused int      `json:"refused,omitempty"`
	Paused  []string `json:"paused,omitempty"` // queues that are paused at the source

	// LeftUnknown: the source did not say how many jobs are left. Then Left is zero everywhere.
	LeftUnknown bool `json:"left_unknown,omitempty"`
}

// reasonUnknown is the reason of rows whose jobs could not be counted.
const reasonUnknown = "not known: the source did not answer"

// forgetLeft records that it is not known how many jobs are left.
func (r *Report) forgetLeft() {
	r.LeftUnknown, r.Left = true, 0
	for i := range r.Rows {
		r.Rows[i].Left, r.Rows[i].Reason = 0, reasonUnknown
	}
}

// Refused is a job that this broker has refused. It stays at the source.
type Refused struct {
	Queue  string `json:"queue"`
	State  string `json:"state"`
	ID     string `json:"id"` // id at the source
	Reason string `json:"reason"`
	Job    any    `json:"job"` // the submission
}

// The states of jobs in counts.
const (
	Ready     = "ready"
	Leased    = "leased"
	Scheduled = "scheduled"
	Retrying  = "retrying"
	Dead      = "dead"
)

// tally collects counts by queue and state.
type tally struct{ rows map[[2]string]*Row }

func (t *tally) add(counts []Count, set func(r *Row, n int)) {
	for _, c := range counts {
		set(t.row(c.Queue, c.State), c.Jobs)
	}
}

func (t *tally) row(queue, state string) *Row {
	if t.rows == nil {
		t.rows = make(map[[2]string]*Row)
	}
	key := [2]string{queue, state}
	if t.rows[key] == nil {
		t.rows[key] = &Row{Queue: queue, State: state}
	}
	return t.rows[key]
}

func (t *tally) report() Report {
	r := Report{Rows: []Row{}}
	for _, row := range t.rows {
		if row.Before == 0 && row.Moved == 0 && row.Left == 0 {
			continue
		}
		r.Rows = append(r.Rows, *row)
		r.Before += row.Before
		r.Moved += row.Moved
		r.Left += row.Left
		r.Refused += row.Refused
	}
	slices.SortFunc(r.Rows, func(a, b Row) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.State, b.State))
	})
	return r
}
