package crossprotocol

import (
	"fmt"
	"strings"
	"testing"
)

// section is the part of docs/sharing.md about a protocol: its jobs with the workers of others, and its workers with
// the jobs of others.
type section struct {
	name             string // name in its markers
	submitted, works string // headings of the tables
	ends             []string
	submit           func(t *testing.T, k workerKind, end int) string
	work             func(t *testing.T, o origin, end int) string
}

// sharingSection plays every cell of a section and compares the results with docs/sharing.md.
func sharingSection(t *testing.T, s section) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n| end |", s.submitted)
	for _, k := range workerKinds() {
		fmt.Fprintf(&b, " %s |", k.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(workerKinds())) + "\n")
	for i := range ends[:5] {
		fmt.Fprintf(&b, "| %s |", ends[i].name)
		for _, k := range workerKinds() {
			fmt.Fprintf(&b, " %s |", inBubble(t, func(t *testing.T) string { return s.submit(t, k, i) }))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\n### %s\n\n| job |", s.works)
	for _, end := range s.ends {
		fmt.Fprintf(&b, " %s |", end)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(s.ends)) + "\n")
	for _, o := range origins() {
		if strings.Contains(o.name, "sched") || strings.Contains(o.name, "epoch") || strings.Contains(o.name, "batch") {
			continue
		}
		fmt.Fprintf(&b, "| %s |", o.name)
		for i := range s.ends {
			fmt.Fprintf(&b, " %s |", inBubble(t, func(t *testing.T) string { return s.work(t, o, i) }))
		}
		b.WriteString("\n")
	}
	compareSection(t, s.name, b.String())
}
