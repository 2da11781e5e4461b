package main

import (
	"strings"
	"testing"

	"broker/core/engine"
)

func TestDoctorSaysHowNewTheStoreOfANodeIs(t *testing.T) {
	t.Parallel()
	var w strings.Builder
	printContents(&w, &engine.Report{Cluster: "c1", Applied: 92, AppliedAt: 1_700_000_000_000_000})
	if want := "a node of cluster c1, with its log up to entry 92, of 2023-11-14T22:13:20Z"; !strings.Contains(
		w.String(), want) {
		t.Errorf("%q lacks %q", w.String(), want)
	}
	w.Reset()
	printContents(&w, &engine.Report{})
	if strings.Contains(w.String(), "cluster") {
		t.Errorf("a single broker: %q", w.String())
	}
}
