package config

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of settings into docs/settings.md")

// The lines around the table in docs/settings.md.
const (
	tableStart = "<!-- settings: written by the test of package config; run it with -update after a change -->\n"
	tableEnd   = "<!-- end of settings -->\n"
)

// TestDocsListEverySetting compares the table in docs/settings.md with the declarations.
func TestDocsListEverySetting(t *testing.T) {
	t.Parallel()
	const path = "../docs/settings.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), tableStart)
	_, tail, foundEnd := strings.Cut(rest, tableEnd)
	if !found || !foundEnd {
		t.Fatal("docs/settings.md has no markers for the table")
	}
	want := head + tableStart + table() + tableEnd + tail
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatal("the table of docs/settings.md is out of date: go test ./config -update")
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
		if defaults := shared[name]; isProtocol(section) && len(defaults) == len(allWireNames()) {
			if section != "workq" {
				continue
			}
			path = strings.Join(allWireNames(), ", ") + ": " + name
			value = strings.Join(defaults, ", ")
			if len(slices.Compact(slices.Clone(defaults))) == 1 {
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
	return slices.Contains(allWireNames(), section)
}
