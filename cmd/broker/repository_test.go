package main

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Files of other projects and of the tools are not ours to check.
var foreign = []string{".git", ".cache", "bin", "node_modules"}

// goFiles returns the paths of all Go files of the repository, without those of tools.
func goFiles(t *testing.T, repository fs.FS) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains(foreign, entry.Name()) {
			return fs.SkipDir
		}
		if path.Ext(name) == ".go" {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestNamedGoFilesExist checks the names of Go files in the engineers' pages, in the linter's settings and in every
// doc.go. A doc.go names files below its own folder, or by their path from the top.
func TestNamedGoFilesExist(t *testing.T) {
	t.Parallel()
	repository := os.DirFS("../..")
	files := goFiles(t, repository)
	pages := []string{"ARCHITECTURE.md", "CONTRIBUTING.md", ".golangci.yml"}
	for _, file := range files {
		if path.Base(file) == "doc.go" {
			pages = append(pages, file)
		}
	}
	fileName := regexp.MustCompile(`[\w./*-]*\w\.go\b`)
	missing := regexp.MustCompile(`\b(no|in place of) \w+\.go\b`) // a protocol may lack a file, and says so
	for _, page := range pages {
		text, err := fs.ReadFile(repository, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range fileName.FindAllString(missing.ReplaceAllString(string(text), ""), -1) {
			if name == "_test.go" {
				continue // a kind of files
			}
			if !namesAFile(files, page, name[strings.LastIndex(name, "*")+1:]) {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
	}
}

func namesAFile(files []string, page, name string) bool {
	ending := "/" + strings.TrimPrefix(name, "/")
	return slices.ContainsFunc(files, func(file string) bool {
		inReach := file == name || path.Base(page) != "doc.go" || strings.HasPrefix(file, path.Dir(page)+"/")
		return inReach && strings.HasSuffix("/"+file, ending)
	})
}

// TestWaiversNameEnabledLinters checks what nolintlint cannot see: a waiver for a linter that is off waives nothing.
func TestWaiversNameEnabledLinters(t *testing.T) {
	t.Parallel()
	repository := os.DirFS("../..")
	settings, err := fs.ReadFile(repository, ".golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, enabled, _ := strings.Cut(string(settings), "  enable:\n")
	enabled, _, _ = strings.Cut(enabled, "  settings:\n")
	waiver := regexp.MustCompile(`//nolint:([a-z,]+)`)
	for _, file := range goFiles(t, repository) {
		text, err := fs.ReadFile(repository, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range waiver.FindAllStringSubmatch(string(text), -1) {
			for linter := range strings.SplitSeq(found[1], ",") {
				if !strings.Contains(enabled, "    - "+linter+"\n") {
					t.Errorf("%s waives %s, which .golangci.yml does not enable", file, linter)
				}
			}
		}
	}
}
