package faktory

import (
	"errors"

	"broker/core"
)

// Prepare makes of a work unit the job that PUSH would submit, with everything that its custom object asks for. It is for
// jobs that the broker pushes by itself: they may come without a jid. Any goroutine.
func (f *Frontend) Prepare(unit []byte) (*core.Job, error) { return f.prepare(unit, f.b.Now()) }

// CheckUnit says what Prepare would refuse.
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
