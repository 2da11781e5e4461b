package config

import (
	"fmt"
	"os"
	"strings"
)

// addLines adds the line of each problem's setting in a settings file, for problems that name the file as their source,
// for settings with a value of the file, and for members of tables, which only the file has.
func (l *loader) addLines(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		return // the problems say so
	}
	lines := linesOf(string(text))
	for i, p := range l.problems {
		source := " (" + file + ")"
		_, anywhere := l.settings[p.Setting]
		if anywhere && l.sources[p.Setting] != file && !strings.HasSuffix(p.Text, source) {
			continue
		}
		if line := lineOf(lines, p.Setting); line > 0 {
			l.problems[i].Text = fmt.Sprintf("%s (%s, line %d)", strings.TrimSuffix(p.Text, source), file, line)
		}
	}
}

// linesOf finds the lines of the tables and keys of a TOML file, by their paths: "http.listen", "route[0].match".
func linesOf(text string) map[string]int {
	lines, lists, prefix := map[string]int{}, map[string]int{}, ""
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch key, _, isKey := strings.Cut(line, "="); {
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "[["):
			name := bare(strings.TrimLeft(line, "["))
			prefix = fmt.Sprintf("%s[%d].", name, lists[name])
			lists[name]++
			note(lines, strings.TrimSuffix(prefix, "."), n+1)
		case strings.HasPrefix(line, "["):
			name := bare(line[1:])
			if list, rest, sub := strings.Cut(name, "."); sub && lists[list] > 0 { // of the last table of a list
				name = fmt.Sprintf("%s[%d].%s", list, lists[list]-1, rest)
			}
			prefix = name + "."
			note(lines, name, n+1)
		case isKey:
			note(lines, prefix+bare(key), n+1)
		}
	}
	return lines
}

// bare is a name without brackets, spaces and quotes.
func bare(name string) string {
	name, _, _ = strings.Cut(name, "]")
	return strings.ReplaceAll(strings.Trim(name, " \t"), `"`, "")
}

// note keeps the first line of a path.
func note(lines map[string]int, path string, line int) {
	if _, known := lines[path]; !known {
		lines[path] = line
	}
}

// lineOf is the line of a setting, or of the table or inline table that it is in; zero if there is none.
func lineOf(lines map[string]int, path string) int {
	for path != "" {
		if line, ok := lines[path]; ok {
			return line
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return 0
}

// likely is the setting or section that an unknown one may mean, as the end of a sentence; empty if none is similar.
func (l *loader) likely(path string, isTable bool) string {
	best, least := "", 3 // more than two letters apart are another word
	for known := range l.settings {
		if isTable {
			known, _, _ = strings.Cut(known, ".")
			if _, isSetting := l.settings[known]; isSetting {
				continue
			}
		}
		if d := distance(path, known); d < least || d == least && d < 3 && known < best {
			best, least = known, d
		}
	}
	switch {
	case best == "":
		return ""
	case isTable:
		best = "[" + best + "]"
	}
	return "; do you mean " + best + "?"
}

// distance is the number of letters to insert, remove or change that make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
