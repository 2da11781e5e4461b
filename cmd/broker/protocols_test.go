package main

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"broker/core"
)

// mostFiles is the largest number of Go files outside the rooms of a protocol that name it.
const mostFiles = 14

// atHome are protocols with features that others do not have. The broker's own clients in operate/demo and the clients
// of the simulation speak the first three; principals have credentials for Faktory and SQS.
var atHome = map[core.Protocol]int{core.Workq: 17, core.Gearman: 33, core.Faktory: 44, core.SQS: 15}

// examples are files that name a protocol only in an example of a help text.
var examples = []string{"cmd/broker/cli/record.go"}

// TestRecipeListsTheFilesOfAProtocol checks how many files a new protocol touches. Beanstalk has all that protocols
// have, and nothing more: the recipe of CONTRIBUTING.md names the files that name it.
func TestRecipeListsTheFilesOfAProtocol(t *testing.T) {
	t.Parallel()
	repository := os.DirFS("../..")
	text, err := fs.ReadFile(repository, "CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(text), "\n## Adding a front-end\n")
	recipe, _, _ = strings.Cut(recipe, "\n## ")
	naming := make(map[core.Protocol][]string)
	for _, file := range goFiles(t, repository) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "integration/") ||
			strings.HasPrefix(file, "examples/") {
			continue
		}
		source, err := fs.ReadFile(repository, file)
		if err != nil {
			t.Fatal(err)
		}
		words := strings.ToLower(wordsOf(source))
		for _, p := range core.Protocols {
			if p != core.Internal && p != core.HTTP && strings.Contains(words, p.String()) && !isRoom(file, p) {
				naming[p] = append(naming[p], file)
			}
		}
	}
	for p, files := range naming {
		most, own := atHome[p]
		if !own {
			most = mostFiles
		}
		if len(files) > most {
			t.Errorf("%d files outside the rooms of %v name it, more than %d:\n%s", len(files), p, most,
				strings.Join(files, "\n"))
		}
	}
	for _, file := range naming[core.Beanstalk] {
		if !slices.Contains(examples, file) && !strings.Contains(recipe, "`"+file+"`") {
			t.Errorf("the recipe of CONTRIBUTING.md lacks %s", file)
		}
	}
}

// isRoom reports whether a file belongs to a protocol: it, or a folder above it, has its name.
func isRoom(file string, p core.Protocol) bool {
	return slices.ContainsFunc(strings.Split(file, "/"), func(name string) bool {
		return strings.HasPrefix(name, p.String())
	})
}

// wordsOf returns the identifiers and texts of a source, without the comments.
func wordsOf(source []byte) string {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(source)), source, nil, 0)
	var words strings.Builder
	for {
		switch _, tok, text := s.Scan(); tok {
		case token.EOF:
			return words.String()
		case token.IDENT, token.STRING:
			words.WriteString(text + "\n")
		}
	}
}
