package faktory

import (
	"errors"
	"time"

	"broker/core"
)

// Template builds the template for the jobs of a schedule: the job that PUSH would submit for a work unit, with
// durations instead of times. The work unit needs no jid. Any goroutine may call it.
func (f *Frontend) Template(unit []byte) (*core.Job, error) {
	later, err := f.templateAt(unit, core.InstantOf(time.Unix(1, 0)))
	if err != nil {
		return nil, err
	}
	job, err := f.templateAt(unit, 0)
	if err != nil {
		return nil, err
	}
	if job.StartBefore != 0 && job.StartBefore == later.StartBefore {
		return nil, errors.New("a job that is submitted repeatedly cannot have expires_at, only expires_in")
	}
	return job, nil
}

// CheckUnit returns the error that Template would return.
func CheckUnit(unit []byte) error {
	_, err := new(Frontend).Template(unit)
	return err
}

// templateAt builds the job that a PUSH at this instant would submit.
func (f *Frontend) templateAt(unit []byte, now core.Instant) (*core.Job, error) {
	var u workUnit
	if err := parseWorkUnit(unit, &u); err != nil {
		return nil, err
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
