package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// grid is an aligned Markdown table. Its first row is the heading.
type grid [][]string

func (g grid) print(w io.Writer) {
	if len(g) == 0 {
		return
	}
	widths := make([]int, len(g[0]))
	for _, row := range g {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for i, row := range g {
		writeRow(w, row, widths)
		if i == 0 {
			writeRow(w, rules(widths), widths)
		}
	}
}

// rules returns the line below the heading.
func rules(widths []int) []string {
	row := make([]string, len(widths))
	for i, width := range widths {
		row[i] = strings.Repeat("-", width)
	}
	return row
}

// writeRow pads a short row with empty cells.
func writeRow(w io.Writer, row []string, widths []int) {
	var line strings.Builder
	for i, width := range widths {
		cell := ""
		if i < len(row) {
			cell = row[i]
		}
		line.WriteString("| " + cell + strings.Repeat(" ", width-utf8.RuneCountInString(cell)) + " ")
	}
	_, _ = fmt.Fprintln(w, line.String()+"|") // screen.Write handles errors
}
