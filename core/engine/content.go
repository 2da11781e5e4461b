package engine

import (
	"errors"
	"slices"
	"strings"

	"broker/core/internal/machine"
	"broker/core/internal/store"
)

// Content names the data that users would lose if the store were replaced, such as "jobs and schedules"; empty: no such
// data. also does the same for one metadata entry of the front-ends; it may be nil.
func Content(s *store.Store, also func(name string) string) (string, error) {
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
		if also != nil {
			add(also(name))
		}
		return nil
	}), s.ScanDocuments("", "", func(string, []byte) bool {
		add("documents")
		return false
	}))
	return strings.Join(kinds, " and "), err
}
