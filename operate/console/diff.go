package console

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// diffLine is one line of a comparison of two texts.
type diffLine struct {
	Op   string // "same", "old" (removed), "new" (added) or "gap"
	Text string
}

var diffOps = map[udiff.OpKind]string{udiff.Equal: "same", udiff.Delete: "old", udiff.Insert: "new"}

// diffLines compares two texts line by line. It leaves out equal lines that are far from a difference.
func diffLines(before, after string) (all []diffLine) {
	if before == after {
		return nil
	}
	before, after = before+"\n", after+"\n"
	d, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), udiff.DefaultContextLines)
	if err != nil {
		return []diffLine{{Op: "gap", Text: err.Error()}}
	}
	for _, hunk := range d.Hunks {
		if hunk.FromLine > 1 {
			all = append(all, diffLine{Op: "gap", Text: "…"})
		}
		for _, line := range hunk.Lines {
			all = append(all, diffLine{Op: diffOps[line.Kind], Text: strings.TrimSuffix(line.Content, "\n")})
		}
	}
	return all
}
