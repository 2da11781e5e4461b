package service

import (
	"context"

	"broker/core"
)

// Limits of a shown workflow.
const (
	maxWorkflowShown   = 1000
	maxWorkflowCounted = 20_000
)

// Workflow is a job or a batch with all jobs below it.
type Workflow struct {
	Of        string         `json:"of" doc:"the job or the batch"`
	Total     int            `json:"total" doc:"jobs that still exist, and that the caller may read"`
	States    map[string]int `json:"states" doc:"number of jobs in each state"`
	Truncated bool           `json:"truncated,omitempty" doc:"there are more: total and states cover the first 20,000"`
	Jobs      []WorkflowJob  `json:"jobs" doc:"the first 1,000, in the order of submission"`
}

// WorkflowJob is a job of a workflow.
type WorkflowJob struct {
	Job
	Depth int `json:"depth" doc:"links between this job and the top"`
}

// Workflow shows a job or a batch with all jobs below it that the caller may read.
func (s *Service) Workflow(ctx context.Context, caller Caller, id string) (*Workflow, error) {
	flow := &Workflow{Of: id, States: map[string]int{}, Jobs: []WorkflowJob{}}
	for _, state := range core.States {
		flow.States[state.String()] = 0
	}
	depths := map[string]int{}
	for page := (JobPage{Limit: maxWorkflowShown}); ; {
		list, err := s.Jobs(ctx, caller, JobFilter{Workflow: id}, page)
		if IsCode(err, CodeInvalid) {
			return nil, &Error{Code: CodeJobNotFound, Detail: err.Error()}
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Jobs {
			j := &list.Jobs[i]
			flow.States[j.State]++
			if flow.Total++; flow.Total <= maxWorkflowShown {
				flow.Jobs = append(flow.Jobs, WorkflowJob{Job: *j, Depth: depthOf(j, depths)})
			}
		}
		if page.Cursor = list.Cursor; page.Cursor == "" {
			return flow, nil
		}
		if flow.Total >= maxWorkflowCounted {
			flow.Truncated = true
			return flow, nil
		}
	}
}

// depthOf returns and records one more than the maximum depth of the jobs above. Jobs must come in the order of their
// links.
func depthOf(j *Job, depths map[string]int) (depth int) {
	for _, above := range append(j.Waiting, j.Parent) {
		if d, known := depths[above]; known {
			depth = max(depth, d+1)
		}
	}
	depths[seqName(j.Seq)] = depth
	return depth
}
