package console

import (
	"broker/core"
	"broker/operate/service"
)

type workflowData struct {
	*service.Workflow
	Counts []workflowState
	Open   int // jobs that have not ended
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
	return &view{page: "workflow", title: "Workflow " + flow.Of, nav: "jobs", data: d}, nil
}
