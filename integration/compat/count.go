package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// count is what came of the tests of one run. The zero value means that nothing was run.
type count struct{ Passed, Failed, Skipped int }

// errNoCount means that a run printed no numbers: it did not get to its end.
var errNoCount = errors.New("it printed no result")

func (c count) ran() int { return c.Passed + c.Failed }

func (c count) String() string {
	if c == (count{}) {
		return "not run"
	}
	text := fmt.Sprintf("%d of %d", c.Passed, c.ran())
	if c.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", c.Skipped)
	}
	return text
}

// formats finds the number of all tests that ran, or of those that passed, and of the others.
var formats = map[int]struct{ all, passed, failed, skipped string }{
	miniTest: {all: `(\d+) runs,`, failed: `(\d+) (?:failures|errors)`, skipped: `(\d+) skips`},
	phpUnit:  {all: `(?:Tests: |OK \()(\d+)`, failed: `(?:Failures|Errors): (\d+)`, skipped: `(?:Skipped|Incomplete): (\d+)`},
	phpt:     {passed: `Tests passed +: +(\d+)`, failed: `Tests (?:failed|warned) +: +(\d+)`, skipped: `Tests skipped +: +(\d+)`},
	pytest:   {passed: `(\d+) passed`, failed: `(\d+) (?:failed|errors?)\b`, skipped: `(\d+) skipped`},
	mocha:    {passed: `(\d+) passing`, failed: `(\d+) failing`, skipped: `(\d+) pending`},
	tap:      {passed: `# pass (\d+)`, failed: `# fail (\d+)`, skipped: `# skip (\d+)`},
	cucumber: {all: `(\d+) scenarios?`, failed: `scenarios? \(.*?(\d+) (?:failed|undefined|ambiguous)`, skipped: `scenarios? \(.*?(\d+) (?:skipped|pending)`},
}

// parse counts the tests in the output of a suite.
func parse(kind int, output string) (count, error) {
	if kind == goTest {
		return parseGoTest(output)
	}
	f := formats[kind]
	sum := func(pattern string) (n int, found bool) {
		if pattern == "" {
			return 0, false
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(output, -1) {
			digits, err := strconv.Atoi(m[1])
			if err != nil {
				continue // more digits than a number of tests has
			}
			n, found = n+digits, true
		}
		return n, found
	}
	var c count
	c.Failed, _ = sum(f.failed)
	c.Skipped, _ = sum(f.skipped)
	passed, found := sum(f.passed)
	if all, ok := sum(f.all); ok {
		passed, found = all-c.Failed-c.Skipped, true
	}
	if !found {
		return count{}, errNoCount
	}
	c.Passed = passed
	return c, nil
}

// parseGoTest counts the tests that have no tests below them.
func parseGoTest(output string) (count, error) {
	ends, parents := map[string]string{}, map[string]bool{}
	for line := range strings.Lines(output) {
		var e struct{ Action, Package, Test string }
		if json.Unmarshal([]byte(line), &e) != nil || e.Test == "" {
			continue // a line of the compiler
		}
		name := e.Package + " " + e.Test
		for i := strings.LastIndexByte(name, '/'); i > len(e.Package); i = strings.LastIndexByte(name[:i], '/') {
			parents[name[:i]] = true
		}
		switch e.Action {
		case "run":
			ends[name] = "fail" // until it ends
		case "pass", "fail", "skip":
			ends[name] = e.Action
		}
	}
	var c count
	for name, end := range ends {
		switch {
		case parents[name]:
		case end == "pass":
			c.Passed++
		case end == "skip":
			c.Skipped++
		default:
			c.Failed++
		}
	}
	if c == (count{}) {
		return c, errNoCount
	}
	return c, nil
}
