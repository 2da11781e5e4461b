package harness

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// repository makes a repository whose file a says "format 1", "format 2" and then something else beside it.
func repository(t *testing.T) (dir string) {
	t.Helper()
	Need(t, "git")
	dir = t.TempDir()
	run := func(args ...string) {
		t.Helper()
		if _, err := git(dir,
			append([]string{"-c", "user.name=test", "-c", "user.email=test@localhost"}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "--quiet")
	for _, content := range []string{"format 1\n", "format 2\n", "format 2\nmore\n"} {
		if err := os.WriteFile(filepath.Join(dir, "a"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		run("add", "a")
		run("commit", "--quiet", "--message", content)
	}
	return dir
}

// A clone of depth 1 finds earlier versions in the folder that it was cloned from; if that is not at hand, the error
// says what to do.
func TestShallowClonesFindEarlierVersions(t *testing.T) {
	t.Parallel()
	whole := repository(t)
	want, err := git(whole, "rev-parse", "HEAD^^")
	if err != nil {
		t.Fatal(err)
	}
	shallow := t.TempDir()
	if _, err := git(shallow, "clone", "--quiet", "--depth", "1", "file://"+whole, shallow); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{whole, shallow} {
		h, err := history(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := commitBefore(h, "a", "^format"); got != want || err != nil {
			t.Errorf("%s %v, want %s", got, err, want)
		}
	}
	for _, origin := range []string{"file:///nowhere", "https://localhost/nowhere", shallow} {
		if _, err := git(shallow, "remote", "set-url", "origin", origin); err != nil {
			t.Fatal(err)
		}
		if _, err := history(t, shallow); !errors.Is(err, errShallow) {
			t.Errorf("%s: %v", origin, err)
		}
	}
}
