package console

import (
	"slices"
	"strings"
)

// diffLine is a line of a comparison of two texts.
type diffLine struct {
	Op   string // "same", "old" (removed), "new" (added) or "gap"
	Text string
}

// mostDiffLines bounds the work of a comparison, and diffContext is how many equal lines are shown around a difference.
const (
	mostDiffLines = 1000
	diffContext   = 3
)

// diffLines compares two texts line by line. Equal lines far from a difference are left out.
func diffLines(before, after string) []diffLine {
	if before == after {
		return nil
	}
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	all := linesAs("same", a[:head])
	all = append(all, diffMiddle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	return foldSame(append(all, linesAs("same", a[len(a)-tail:])...))
}

func linesAs(op string, lines []string) (all []diffLine) {
	for _, line := range lines {
		all = append(all, diffLine{op, line})
	}
	return all
}

// diffMiddle compares what is between the equal beginnings and ends, by the longest common subsequence.
func diffMiddle(a, b []string) (all []diffLine) {
	if len(a) > mostDiffLines || len(b) > mostDiffLines {
		return append(linesAs("old", a), linesAs("new", b)...)
	}
	common := make([][]int, len(a)+1) // of a[i:] and b[k:]
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i, line := range slices.Backward(a) {
		for k, other := range slices.Backward(b) {
			if common[i][k] = max(common[i+1][k], common[i][k+1]); line == other {
				common[i][k] = common[i+1][k+1] + 1
			}
		}
	}
	i, k := 0, 0
	for i < len(a) && k < len(b) {
		switch {
		case a[i] == b[k]:
			all, i, k = append(all, diffLine{"same", a[i]}), i+1, k+1
		case common[i+1][k] >= common[i][k+1]:
			all, i = append(all, diffLine{"old", a[i]}), i+1
		default:
			all, k = append(all, diffLine{"new", b[k]}), k+1
		}
	}
	return append(append(all, linesAs("old", a[i:])...), linesAs("new", b[k:])...)
}

// foldSame leaves out equal lines that are far from a difference.
func foldSame(all []diffLine) (kept []diffLine) {
	for i, line := range all {
		near := slices.ContainsFunc(all[max(0, i-diffContext):min(len(all), i+diffContext+1)], func(l diffLine) bool { return l.Op != "same" })
		switch {
		case near:
			kept = append(kept, line)
		case len(kept) == 0 || kept[len(kept)-1].Op != "gap":
			kept = append(kept, diffLine{Op: "gap", Text: "…"})
		}
	}
	return kept
}
