package console

import (
	"slices"

	"broker/core"
	"broker/operate/service"
)

type workflowData struct {
	*service.Workflow
	Counts []workflowState
	Open   int    // jobs that have not ended
	Top    string // the job or batch above all that are above this one; empty: this is it
}

// workflowState counts the jobs of a workflow in a state.
type workflowState struct {
	State string
	Jobs  int
}

// workflowPage shows a job or a batch with all jobs below it.
func workflowPage(r *request) (*view, error) {
	flow, err := r.service.Workflow(r.Context(), r.caller, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	d := &workflowData{Workflow: flow}
	for _, state := range core.States {
		n := flow.States[state.String()]
		if n > 0 {
			d.Counts = append(d.Counts, workflowState{state.String(), n})
		}
		if state.Unfinished() {
			d.Open += n
		}
	}
	if top := r.topOf(flow.Of); top != flow.Of {
		d.Top = top
	}
	return &view{page: "workflow", title: "Workflow " + flow.Of, nav: "jobs", data: d}, nil
}

// maxClimb limits the links that topOf follows.
const maxClimb = 100

// topOf returns the top of the workflow in which a job is: of its parent, else of the first job that it comes after,
// else its batch.
func (r *request) topOf(id string) string {
	for range maxClimb {
		j, err := r.service.Job(r.Context(), r.caller, id)
		if err != nil {
			return id // a batch, or a job that is gone
		}
		above := append([]string{j.Parent}, j.After...)
		above = slices.DeleteFunc(append(above, j.Batch), func(name string) bool { return name == "" })
		if len(above) == 0 {
			return id
		}
		id = above[0]
	}
	return id
}
