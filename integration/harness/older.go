package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"broker/integration/server"
)

// BinaryBefore returns the path of a broker as it was before the last change of a line of a file that matches a
// pattern. It is built from the history of the project and kept under .cache. A shallow clone of a folder reads the
// history there. Where there is none, the test is skipped.
func BinaryBefore(t testing.TB, file, pattern string) string {
	t.Helper()
	root, err := server.Root()
	if err != nil {
		t.Fatal(err)
	}
	repository, err := history(t, root)
	commit := ""
	if err == nil {
		commit, err = commitBefore(repository, file, pattern)
	}
	if err != nil {
		skip(t, "no older broker can be built from the history of the project: "+err.Error())
	}
	dir := filepath.Join(root, ".cache", "older", commit)
	path := filepath.Join(dir, "broker")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := buildCommit(repository, commit, dir); err != nil {
		t.Fatal(err)
	}
	return path
}

// errShallow says how to get the history.
var errShallow = errors.New("this clone is shallow: run git fetch --unshallow")

// history is a repository with the whole history: that of the project, or a copy of the folder that a shallow one was
// cloned from.
func history(t testing.TB, root string) (repository string, err error) {
	t.Helper()
	shallow, err := git(root, "rev-parse", "--is-shallow-repository")
	if err != nil || shallow != "true" {
		return root, err
	}
	origin, err := git(root, "config", "remote.origin.url")
	if err != nil {
		return "", errShallow
	}
	origin = strings.TrimPrefix(origin, "file://")
	if shallow, err := git(origin, "rev-parse", "--is-shallow-repository"); !filepath.IsAbs(origin) || err != nil ||
		shallow == "true" {
		return "", errShallow
	}
	repository = t.TempDir()
	_, err = git(repository, "clone", "--quiet", "--bare", origin, repository)
	return repository, err
}

// commitBefore is the commit before the last change of a line of a file.
func commitBefore(repository, file, pattern string) (string, error) {
	changed, err := git(repository, "log", "-1", "--format=%H", "-G", pattern, "--", file)
	if err == nil && changed == "" {
		err = fmt.Errorf("no commit changes %q in %s", pattern, file)
	}
	if err != nil {
		return "", err
	}
	return git(repository, "rev-parse", "--verify", changed+"^")
}

// git runs a command of git and returns the line that it prints.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// buildCommit builds the broker of a commit into dir.
func buildCommit(repository, commit, dir string) error {
	source, err := os.MkdirTemp("", "broker-older-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(source) }() // leftovers in the temporary folder do no harm
	archive := filepath.Join(source, "source.tar")
	if _, err := git(repository, "archive", "-o", archive, commit); err != nil {
		return err
	}
	if out, err := exec.Command("tar", "-xf", archive, "-C", source).CombinedOutput(); err != nil {
		return fmt.Errorf("unpack %s: %w\n%s", archive, err, out)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	unfinished := filepath.Join(dir, fmt.Sprint("broker-", os.Getpid()))
	cmd := exec.Command("go", "build", "-mod=readonly", "-o", unfinished, "./cmd/broker")
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", commit, err, out)
	}
	return os.Rename(unfinished, filepath.Join(dir, "broker"))
}
