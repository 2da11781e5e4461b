package faktory

import (
	"errors"
	"time"

	"broker/core"
)

// JobTemplate is a job without a jid that is submitted again and again. Members that are nil have Faktory's defaults.
type JobTemplate struct {
	Type, Queue                  string
	Args                         []byte // a JSON array
	Custom                       []byte // a JSON object
	Retry, ReserveFor, Backtrace *int64
}

// Template builds the job of a schedule: the one that PUSH would submit, with durations instead of times. Any goroutine
// may call it.
func (f *Frontend) Template(t *JobTemplate) (*core.Job, error) {
	later, err := f.templateAt(t, core.InstantOf(time.Unix(1, 0)))
	if err != nil {
		return nil, err
	}
	job, err := f.templateAt(t, 0)
	if err != nil {
		return nil, err
	}
	if job.StartBefore != 0 && job.StartBefore == later.StartBefore {
		return nil, errors.New("a job that is submitted repeatedly cannot have expires_at, only expires_in")
	}
	return job, nil
}

// Check returns the error that Template would return.
func (t *JobTemplate) Check() error {
	_, err := new(Frontend).Template(t)
	return err
}

// templateAt builds the job that a PUSH at this instant would submit.
func (f *Frontend) templateAt(t *JobTemplate, now core.Instant) (*core.Job, error) {
	u := workUnit{
		jobtype: []byte(t.Type), queue: []byte(t.Queue), args: t.Args, custom: t.Custom,
		retry: valueOr(t.Retry, defaultRetry), retrySet: t.Retry != nil,
		reserveFor: valueOr(t.ReserveFor, 0), backtrace: valueOr(t.Backtrace, 0),
	}
	if string(u.custom) == "{}" {
		u.custom = nil // as in a PUSH
	}
	s, err := f.newJob(&u, &names{}, now)
	if err != nil {
		return nil, err
	}
	if s.after != nil || s.parent != "" || s.job.Batch != 0 {
		return nil, errors.New("such a job cannot be linked to others or belong to a batch")
	}
	return s.job, nil
}

func valueOr(p *int64, otherwise int64) int64 {
	if p == nil {
		return otherwise
	}
	return *p
}
