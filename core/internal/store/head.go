package store

import (
	"fmt"

	"broker/core"
	"broker/core/internal/record"
)

// Head reads a job without a body that has a key of its own: Body is nil then. Nothing else refers to its memory.
func (s *Store) Head(seq uint64) (*core.Job, error) {
	var k jobKey
	value, err := s.get(k.of(spaceJob, seq, partJob))
	if err == nil {
		j := new(core.Job)
		if _, _, err = record.DecodeJob(value, seq, j, nil, nil); err == nil {
			return j, nil
		}
	}
	return nil, s.damage(fmt.Sprintf("read job %d", seq), err)
}
