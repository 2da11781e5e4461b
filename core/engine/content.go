package engine

import (
	"errors"
	"slices"
	"strings"

	"broker/core/internal/machine"
	"broker/core/internal/store"
)

// Content names what a store holds that its users would miss if another store took its place, such as "jobs, schedules"; empty:
// nothing.
func Content(s *store.Store) (string, error) {
	var kinds []string
	add := func(kind string) {
		if kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	jobs, err := s.HasJobs()
	if jobs {
		add("jobs")
	}
	err = errors.Join(err, s.ScanMeta("", func(name string, value []byte) error {
		add(machine.ContentOf(name, value))
		return nil
	}), s.ScanDocuments("", "", func(string, []byte) bool {
		add("documents")
		return false
	}))
	return strings.Join(kinds, ", "), err
}
