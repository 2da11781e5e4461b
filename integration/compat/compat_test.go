package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"broker/integration/server"
)

func TestNumbersAreReadFromEachFormat(t *testing.T) {
	for _, c := range []struct {
		name   string
		kind   int
		output string
		want   count
	}{
		{"Minitest", miniTest, "Finished in 7.2s, 7.0443 runs/s, 69.3378 assertions/s.\n51 runs, 502 assertions, 1 failures, 2 errors, 3 skips", count{45, 3, 3}},
		{"PHPUnit", phpUnit, "OK (7 tests, 9 assertions)", count{7, 0, 0}},
		{"PHPUnit with failures", phpUnit, "Tests: 1055, Assertions: 1819, Errors: 1, Failures: 2, Skipped: 118.", count{934, 3, 118}},
		{"phpt", phpt, "Tests skipped   :    2 (  3.0%)\nTests warned    :    0\nTests failed    :    1\nTests passed    :   65", count{65, 1, 2}},
		{"pytest", pytest, "1 failed, 242 passed, 3 skipped, 2 errors in 15.11s", count{242, 3, 3}},
		{"mocha", mocha, "  99 passing (513ms)\n  1 pending\n  2 failing\n", count{99, 2, 1}},
		{"TAP", tap, "1..143\n# tests 143\n# pass 139\n# skip 4\n# fail 0\n", count{139, 0, 4}},
		{"Cucumber", cucumber, "10 scenarios (2 failed, 1 skipped, 7 passed)\n30 steps (30 passed)", count{7, 2, 1}},
		{
			"go test, the tests without tests below them", goTest,
			`{"Action":"run","Package":"p","Test":"A"}
{"Action":"run","Package":"p","Test":"A/x"}
{"Action":"pass","Package":"p","Test":"A/x"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"skip","Package":"p","Test":"B"}
{"Action":"run","Package":"p","Test":"ended by a panic"}`,
			count{1, 1, 1},
		},
	} {
		if got, err := parse(c.kind, c.output); err != nil || got != c.want {
			t.Errorf("%s: %+v %v, want %+v", c.name, got, err, c.want)
		}
	}
}

func TestARunThatEndedEarlyHasNoNumber(t *testing.T) {
	for kind := goTest; kind <= cucumber; kind++ {
		if got, err := parse(kind, "cannot load such file\n"); err == nil {
			t.Errorf("format %d: %+v", kind, got)
		}
	}
}

func TestRowsSayWhatDidNotRunAndWhatIsOlder(t *testing.T) {
	all := []suite{
		{name: "a", protocol: "P", server: gearmand},
		{name: "b", protocol: "P", missing: "no such server"},
		{name: "c", protocol: "P"},
	}
	text := page(all, results{Broker: "v2", Date: "2030-01-02", Suites: map[string]result{
		"a": {
			Version: "1.0", Broker: "v1", Date: "2030-01-01", Ours: count{3, 1, 2},
			Original: "1.1", Theirs: count{4, 0, 2},
		},
		"b": {Version: "2.0", Broker: "v2", Date: "2030-01-02", Ours: count{5, 0, 0}},
	}})
	for _, want := range []string{
		"| a | 1.0 |  | 3 of 4, 2 skipped (older: v1, 2030-01-01) | gearmand 1.1: 4 of 4, 2 skipped |",
		"| b | 2.0 |  | 5 of 5 | not run: no such server |",
		"| c | |  | not run here | not run here |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestPageIsMadeOfTheResults(t *testing.T) {
	root, err := server.Root()
	if err != nil {
		t.Fatal(err)
	}
	known, err := load(filepath.Join(root, "integration", "compat", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != page(suites, known) {
		t.Error("docs/compatibility.md is not what make compat writes of integration/compat/results.json")
	}
}
