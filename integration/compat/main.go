package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"broker/integration/server"
)

// errWorse means that the broker failed tests that are not known to differ.
var errWorse = errors.New("results that are not known")

func main() {
	if len(os.Args) == 2 && os.Args[1] == insideArgument {
		os.Exit(inside())
	}
	folder := flag.String("suites", "", "the folder with checkouts of other projects, each named as in the page")
	only := flag.String("run", "", "run only what matches this regular expression; the rest keeps its results")
	write := flag.Bool("write", true, "write results.json and docs/compatibility.md")
	flag.Parse()
	if err := run(*folder, *only, *write); err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
}

func run(folder, only string, write bool) error {
	if folder != "" {
		abs, err := filepath.Abs(folder)
		if err != nil {
			return err
		}
		if info, err := os.Stat(abs); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is not a folder; it holds the checkouts of the suites", folder)
		}
		folder = abs
	}
	match, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	root, err := server.Root()
	if err != nil {
		return err
	}
	file := filepath.Join(root, "integration", "compat", "results.json")
	known, err := load(file)
	if err != nil {
		return err
	}
	r, err := newRunner(root, folder)
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }() // leftovers in the temporary folder do no harm
	var worse []string
	for _, s := range suites {
		if !match.MatchString(s.name) {
			continue
		}
		fmt.Printf("== %s\n", s.name)
		got, err := r.suite(s)
		if err != nil {
			fmt.Printf("   not run: %v\n", err)
			continue
		}
		fmt.Printf("   broker %s; %s %s\n", got.Ours, s.originalName(), got.Theirs)
		if got.Ours.Failed > s.known {
			worse = append(worse, fmt.Sprintf("%s: %s", s.name, got.Ours))
		}
		known.Suites[s.name], known.Broker, known.Date = got, got.Broker, got.Date
		if write { // now, since a later suite may take long
			if err := save(root, file, known); err != nil {
				return err
			}
		}
	}
	if len(worse) > 0 {
		return fmt.Errorf("%w: %s", errWorse, strings.Join(worse, "; "))
	}
	return nil
}
