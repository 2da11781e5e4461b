package faktory

import (
	"errors"

	"broker/core"
)

// Prepare builds the job that PUSH would submit for a work unit. It is for jobs that the broker itself submits, which need no
// jid. Any goroutine.
func (f *Frontend) Prepare(unit []byte) (*core.Job, error) { return f.prepare(unit, f.b.Now()) }

// CheckUnit returns the error that Prepare would return.
func CheckUnit(unit []byte) error {
	_, err := new(Frontend).prepare(unit, 1)
	return err
}

func (f *Frontend) prepare(unit []byte, now core.Instant) (*core.Job, error) {
	var u workUnit
	if err := parseWorkUnit(unit, &u); err != nil {
		return nil, err
	}
	s, err := f.newJob(&u, &names{}, now)
	if err != nil {
		return nil, err
	}
	if s.after != nil || s.parent != "" {
		return nil, errors.New("such a job cannot be linked to others")
	}
	return s.job, nil
}
