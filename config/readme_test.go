package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of settings into the README")

// The lines around the table in the README.
const (
	tableStart = "<!-- settings: written by the test of package config; run it with -update after a change -->\n"
	tableEnd   = "<!-- end of settings -->\n"
)

// TestReadmeListsEverySetting keeps the README's table and the declarations in step.
func TestReadmeListsEverySetting(t *testing.T) {
	t.Parallel()
	const path = "../README.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), tableStart)
	_, tail, foundEnd := strings.Cut(rest, tableEnd)
	if !found || !foundEnd {
		t.Fatal("the README has no markers for the table of settings")
	}
	want := head + tableStart + table() + tableEnd + tail
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatal("the README's table of settings is out of date: go test ./config -update")
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// table is in Markdown. Settings with the same default in all protocols are listed once.
func table() string {
	c := Default()
	shared := make(map[string][]string)
	for _, s := range Settings(&c) {
		section, name, _ := strings.Cut(s.Path, ".")
		if isProtocol(section) {
			shared[name] = append(shared[name], s.String())
		}
	}
	var b strings.Builder
	b.WriteString("| setting | default | meaning |\n|---|---|---|\n")
	for _, s := range Settings(&c) {
		section, name, _ := strings.Cut(s.Path, ".")
		path, value := s.Path, s.String()
		if defaults := shared[name]; isProtocol(section) && len(defaults) == 3 {
			if section != "workq" {
				continue
			}
			path = "workq, gearman, faktory: " + name
			value = strings.Join(defaults, ", ")
			if defaults[0] == defaults[1] && defaults[1] == defaults[2] {
				value = defaults[0]
			}
		}
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", path, value, s.Doc)
	}
	return b.String()
}

func isProtocol(section string) bool {
	return section == "workq" || section == "gearman" || section == "faktory"
}
