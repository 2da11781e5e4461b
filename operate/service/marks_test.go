package service

import (
	"testing"

	"broker/core/engine"
)

// What the broker refuses is neither in the list nor gone from it.
func TestRefusedMarksChangeNothing(t *testing.T) {
	t.Parallel()
	e, err := engine.Open(engine.Options{Durability: engine.None, ManualTimers: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Broker: e})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	caller := tenant(t, "ops", "admin")
	m, err := s.AddMark(t.Context(), caller, Mark{Text: "first"})
	if err != nil {
		t.Fatal(err)
	}
	e.Abandon()
	if _, err := s.AddMark(t.Context(), caller, Mark{Text: "second"}); err == nil {
		t.Error("a broker that has stopped takes a mark")
	}
	if err := s.RemoveMark(t.Context(), caller, m.ID); err == nil {
		t.Error("a broker that has stopped removes a mark")
	}
	if all, err := s.ListMarks(caller); err != nil || len(all) != 1 || all[0].Text != "first" {
		t.Errorf("marks %v, %v", all, err)
	}
	if err := e.Shutdown(); err != nil {
		t.Error(err)
	}
}
