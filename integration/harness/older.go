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

// BinaryBefore returns the path of a broker as it was before the last change of a line of a file that matches a pattern. It is built
// from the history of the project and kept under .cache. The test is skipped where that history is not there.
func BinaryBefore(t testing.TB, file, pattern string) string {
	t.Helper()
	root, err := server.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	changed, err := git(root, "log", "-1", "--format=%H", "-G", pattern, "--", file)
	if err == nil && changed == "" {
		err = fmt.Errorf("no commit changes %q in %s", pattern, file)
	}
	commit := ""
	if err == nil {
		commit, err = git(root, "rev-parse", "--verify", changed+"^")
	}
	if err != nil {
		skip(t, "the history of the project is not there, so that no older broker can be built: "+err.Error())
	}
	dir := filepath.Join(root, ".cache", "older", commit)
	path := filepath.Join(dir, "broker")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := buildCommit(root, commit, dir); err != nil {
		t.Fatal(err)
	}
	return path
}

// git runs a command of git and returns the line that it prints.
func git(root string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// buildCommit builds the broker of a commit into dir.
func buildCommit(root, commit, dir string) error {
	source, err := os.MkdirTemp("", "broker-older-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(source) }() // leftovers in the temporary folder do no harm
	archive := filepath.Join(source, "source.tar")
	if _, err := git(root, "archive", "-o", archive, commit); err != nil {
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
