package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"broker/access"
	"broker/core"
)

// Mark is a moment that people name, such as a deploy. Charts and lists of errors show it.
type Mark struct {
	ID      string    `json:"id" example:"mark-7"`
	At      time.Time `json:"at"`
	Text    string    `json:"text" example:"billing 4.2"`
	Version string    `json:"version,omitempty" doc:"version of the workers' program from then on"`
	Who     string    `json:"who" doc:"name of the principal"`
}

// Marks are stored as a ring of meta entries: keptMarks is their number, and the oldest makes room for a new one. A
// mark is at most maxMarkAge old when it is made.
const (
	keptMarks   = 200
	markMeta    = "http/mark/"
	markPrefix  = "mark-"
	maxMarkText = 200 // bytes
	maxMarkAge  = 30 * 24 * time.Hour
)

// marks are the marks, in the order of their numbers.
type marks struct {
	mu   sync.Mutex // guards list and last
	list []numberedMark
	last uint64
}

type numberedMark struct {
	number uint64
	Mark
}

func markName(number uint64) string { return fmt.Sprintf("%s%03d", markMeta, number%keptMarks) }

// loadMarks reads the stored marks.
func (s *Service) loadMarks() error {
	for _, value := range s.readRing(keptMarks, markName) {
		var m numberedMark
		err := json.Unmarshal(value, &m.Mark)
		if err == nil {
			m.number, err = strconv.ParseUint(strings.TrimPrefix(m.ID, markPrefix), 10, 64)
		}
		if err != nil {
			return fmt.Errorf("read the marks: %w", err)
		}
		s.marks.last = max(s.marks.last, m.number)
		s.marks.list = append(s.marks.list, m)
	}
	slices.SortFunc(s.marks.list, func(a, b numberedMark) int { return cmp.Compare(a.number, b.number) })
	return nil
}

// AddMark stores a mark. Its time is now unless it has one, which is at most 30 days ago.
func (s *Service) AddMark(ctx context.Context, caller Caller, m Mark) (Mark, error) {
	now := s.Now().Time()
	if m.At.IsZero() {
		m.At = now
	}
	m.Text, m.Version = strings.TrimSpace(m.Text), strings.TrimSpace(m.Version)
	switch {
	case m.Text == "" || len(m.Text) > maxMarkText:
		return m, invalid("text", "text must have 1 to %d bytes", maxMarkText)
	case len(m.Version) > core.MaxWorkerVersion:
		return m, invalid("version", "version must not be longer than %d bytes", core.MaxWorkerVersion)
	case m.At.After(now.Add(time.Minute)) || m.At.Before(now.Add(-maxMarkAge)):
		return m, invalid("at", "at must be within the last 30 days")
	}
	if err := caller.mayAll(access.Operate); err != nil {
		return m, err
	}
	m.Text, m.Version, m.At = text(m.Text), text(m.Version), m.At.UTC()
	c := s.open(caller)
	defer c.Close()
	s.marks.mu.Lock()
	number := s.marks.last + 1
	m.ID, m.Who = markPrefix+strconv.FormatUint(number, 10), caller.Name()
	name := markName(number)
	commit, err := s.applied(c, AuditEntry{Action: "mark.add", Target: m.Text, Detail: m.ID},
		&core.WriteMeta{Entries: []core.MetaEntry{{Name: name, Value: toJSON(m)}}})
	if err == nil {
		s.marks.last = number
		s.marks.list = slices.DeleteFunc(s.marks.list, func(o numberedMark) bool { return markName(o.number) == name })
		s.marks.list = append(s.marks.list, numberedMark{number, m})
	}
	s.marks.mu.Unlock()
	return m, c.after(ctx, commit, err)
}

// RemoveMark removes a mark.
func (s *Service) RemoveMark(ctx context.Context, caller Caller, id string) error {
	if err := caller.mayAll(access.Operate); err != nil {
		return err
	}
	c := s.open(caller)
	defer c.Close()
	s.marks.mu.Lock()
	i := slices.IndexFunc(s.marks.list, func(m numberedMark) bool { return m.ID == id })
	if i < 0 {
		s.marks.mu.Unlock()
		return &Error{Code: CodeMarkNotFound, Detail: "there is no mark " + id}
	}
	m := s.marks.list[i]
	commit, err := s.applied(c, AuditEntry{Action: "mark.remove", Target: m.Text, Detail: m.ID},
		&core.WriteMeta{Entries: []core.MetaEntry{{Name: markName(m.number)}}})
	if err == nil {
		s.marks.list = slices.Delete(s.marks.list, i, i+1)
	}
	s.marks.mu.Unlock()
	return c.after(ctx, commit, err)
}

// ListMarks lists the marks, the latest first, for a caller who may read any queue.
func (s *Service) ListMarks(caller Caller) ([]Mark, error) {
	if err := caller.maySome(access.Read); err != nil {
		return nil, err
	}
	s.marks.mu.Lock()
	defer s.marks.mu.Unlock()
	all := make([]Mark, len(s.marks.list))
	for i := range s.marks.list {
		all[i] = s.marks.list[i].Mark
	}
	slices.SortStableFunc(all, func(a, b Mark) int { return b.At.Compare(a.At) })
	return all, nil
}
