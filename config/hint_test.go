package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEachMistakeNamesItsLineAndALikelyName(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "broker.toml")
	text := `# durabillity = "none"
durabillity = "sync"
colours = "red"
poison_after = -1

[beanstalkd]
listen = "127.0.0.1:11300"

[http]
lisen = "127.0.0.1:7420"

[[route]]
match = {queue = "a"}
set = {colour = "red", queue = "b"}

[[route]]
name = "x"
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(Sources{File: file})
	if err == nil {
		t.Fatal("no mistake was found")
	}
	got := strings.ReplaceAll(err.Error(), file, "FILE")
	for _, want := range []string{
		"durabillity: unknown setting; do you mean durability? (FILE, line 2)",
		"colours: unknown setting (FILE, line 3)",
		"poison_after: -1 is not between 0 and 255 (FILE, line 4)",
		"beanstalkd: unknown setting; do you mean [beanstalk]? (FILE, line 6)",
		"http.lisen: unknown setting; do you mean http.listen? (FILE, line 10)",
		"route[0].set.colour: unknown setting (FILE, line 14)",
		"route[1].name: was renamed to match.queue (FILE, line 17)",
	} {
		if !strings.Contains(got+"\n", want+"\n") {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
