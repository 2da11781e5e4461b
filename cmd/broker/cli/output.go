package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"
)

// format is the value of -o.
type format string

// Tables are for people and may change. JSON is the answer of the API.
const (
	formatTable format = "table"
	formatJSON  format = "json"
)

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "table|json" }

func (f *format) Set(s string) error {
	switch format(s) {
	case formatTable, formatJSON:
		*f = format(s)
		return nil
	}
	return fmt.Errorf("expected table or json")
}

// addFormat adds -o to a command.
func addFormat(cmd *cobra.Command) *format {
	f := formatTable
	cmd.Flags().VarP(&f, "output", "o", "output format")
	_ = cmd.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return &f
}

// AddJSON adds -o to a command of another package. The function reports whether JSON is requested.
func AddJSON(cmd *cobra.Command) func() bool {
	f := addFormat(cmd)
	return func() bool { return *f == formatJSON }
}

// printJSON prints an answer of the API, indented.
func printJSON(w io.Writer, raw json.RawMessage) error {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(raw), "", "  "); err != nil {
		return Failed(fmt.Errorf("unexpected answer: %w", err))
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return Failed(err)
}

// PrintValue prints a value as JSON.
func PrintValue(cmd *cobra.Command, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return Failed(err)
	}
	return printJSON(cmd.OutOrStdout(), raw)
}

// table prints rows under a header, in columns. The columns whose header starts with a minus are aligned to the right.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(w io.Writer) error {
	_, err := io.WriteString(w, strings.Join(t.lines(), "\n")+"\n")
	return Failed(err)
}

// lines is the table, the header first.
func (t *table) lines() []string {
	right := make([]bool, len(t.header))
	width := make([]int, len(t.header))
	header := make([]string, len(t.header))
	for i, h := range t.header {
		header[i], right[i] = strings.CutPrefix(h, "-")
		width[i] = lipgloss.Width(header[i])
	}
	for _, row := range t.rows {
		for i, cell := range row {
			width[i] = max(width[i], lipgloss.Width(cell))
		}
	}
	lines := make([]string, 0, len(t.rows)+1)
	for _, row := range append([][]string{header}, t.rows...) {
		var b strings.Builder
		for i, cell := range row {
			space := strings.Repeat(" ", width[i]-lipgloss.Width(cell))
			if right[i] {
				cell = space + cell
			} else {
				cell += space
			}
			b.WriteString(cell + "  ")
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// count shows a number with separators.
func count[N int | int64 | uint64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// plural is "1 job", "2 jobs".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

// span shows a duration in its two largest units.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// size shows a number of bytes.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, prefix := float64(n)/unit, 0
	for value >= unit && prefix < 4 {
		value /= unit
		prefix++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTP"[prefix])
}

// mark is text, or nothing.
func mark(set bool, text string) string {
	if set {
		return text
	}
	return ""
}

// printLine prints what a command has done.
func printLine(cmd *cobra.Command, format string, args ...any) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return Failed(err)
}

// printAnswer prints an answer of the API, or in a line for people what the command has done.
func printAnswer(cmd *cobra.Command, out format, raw json.RawMessage, line string, args ...any) error {
	if out == formatJSON {
		return printJSON(cmd.OutOrStdout(), raw)
	}
	return printLine(cmd, line, args...)
}

// Say prints to a terminal; an error cannot be reported anywhere.
func Say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// oneLine makes foreign text safe for a terminal: it escapes control characters and limits the length.
func oneLine(text string, limit int) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n == limit {
			b.WriteRune('…')
			break
		}
		if !strconv.IsPrint(r) {
			r = '·'
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}
