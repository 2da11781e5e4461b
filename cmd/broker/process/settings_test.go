package process

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"broker/config"
)

// settingsOf reads the rest of settings.
func settingsOf(t *testing.T, c *config.Config) *Settings {
	t.Helper()
	s, err := NewSettings(c)
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

// Mistakes that package config cannot find are reported with the others, and with their lines.
func TestSettingsOfOtherPackagesAreChecked(t *testing.T) {
	t.Parallel()
	const token = "is neither sha256: and 64 hexadecimal digits nor the path of a file"
	for text, want := range map[string]string{
		"[[queue_policy]]\nqueue = \"q\"\ncolour = 1":                     "queue_policy[0].colour: a policy has no member colour",
		"[[queue_policy]]\nqueue = \"q\"\nmax_fails = -1":                 "queue_policy[0].max_fails: max_fails must be a whole number",
		"[[queue_policy]]\nqueue = \"q\"\non_exhausted = {move = \"q\"}":  "queue_policy[0].on_exhausted: on_exhausted.move must name another queue",
		"[[type_policy]]\ntype = \"T\"\nbackoff = {kind = \"fibonacci\"}": "type_policy[0].backoff: backoff must be",
		"[[principal]]\nname = \"a\"\nroles = [\"root\"]":                 `principal[0].roles: "root" is not one of read, produce, consume, operate, admin`,
		"[[principal]]\nname = \"a\"\nroles = [\"read:a,\"]":              `principal[0].roles: "read:a," has an empty queue pattern`,
		"[[principal]]\nname = \"a\"\nroles = [\"admin:a\"]":              "principal[0].roles: admin cannot be limited to queues",
		"[[principal]]\nname = \"a\"\ntoken = \"secret\"":                 "principal[0].token: " + token,
		"[[principal]]\nname = \"anonymous\"":                             `principal[0].name: "anonymous" is the name of clients without a principal`,
		"[[cron]]\nschedule = \"* * * * *\"\n[cron.job]\ntype = \"\"":     "cron[0].job: ",
	} {
		file := filepath.Join(t.TempDir(), "broker.toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSettings(config.Sources{File: file}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestReconcileVisitsWhatDiffersInOrder(t *testing.T) {
	t.Parallel()
	var got []string
	before, after := map[string]int{"a": 1, "b": 2, "d": 0}, map[string]int{"b": 2, "a": 3, "c": 0}
	reconcile(before, after, cmp.Compare[string], func(key string, to int, wanted bool) {
		got = append(got, fmt.Sprint(key, to, wanted))
	})
	if want := []string{"a3 true", "c0 true", "d0 false"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
