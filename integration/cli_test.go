package integration_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"broker/integration/harness"
)

var updateTranscripts = flag.Bool("update", false,
	"rewrite the transcripts of the command line with what the commands print")

// Texts that differ from run to run, and their placeholders in transcripts.
var unstable = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<id>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "<time>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \w+`), "<time>"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d\.\d{3}`), "<time>"},
	{regexp.MustCompile(`(\d+ms|\d+s|0s|\d+m\d\ds) ago`), "<ago>"},
	{regexp.MustCompile(`in \d+(s|m\d\ds|h\d\dm)`), "in <span>"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "<address>"},
	{
		regexp.MustCompile(`(<ago>|<time>|in <span>|WHEN|SINCE|NEXT) {2,}`), "$1  ",
	}, // columns as wide as what they stand for
	{regexp.MustCompile(`(?m)[ \t]+$`), ""},
}

// TestCommandLineTranscripts runs the commands of each testdata/cli_*.txt against a broker of its own and compares what
// they print, line by line. A line that starts with "$ " is a command for the shell, one with "# " a heading.
func TestCommandLineTranscripts(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	files, err := filepath.Glob("testdata/cli_*.txt")
	check(t, err)
	if len(files) == 0 {
		t.Fatal("no transcripts")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			check(t, err)
			got := playTranscript(t, string(want))
			if *updateTranscripts {
				check(t, os.WriteFile(file, []byte(got), 0o600))
				return
			}
			if got != string(want) {
				t.Errorf("%s (run with -update, and read the difference):\n%s", file,
					firstDifference(string(want), got))
			}
		})
	}
}

// playTranscript runs the commands of a transcript and returns it with what they print.
func playTranscript(t *testing.T, transcript string) string {
	t.Helper()
	b := harness.Start(t, harness.Options{})
	dir := t.TempDir()
	check(t, os.Symlink(harness.Binary(t), filepath.Join(dir, "broker")))
	var out strings.Builder
	for line := range strings.Lines(transcript) {
		switch {
		case strings.HasPrefix(line, "$ "):
			out.WriteString(line)
			out.WriteString(runShell(t, "cd "+dir+"; "+strings.TrimPrefix(line, "$ "), []string{
				"PATH=" + dir + ":" + os.Getenv("PATH"), "BROKER_URL=http://" + b.HTTP, "BROKER_TOKEN=" + b.Password,
				"TZ=UTC", "HOME=" + dir,
				"BROKER=" + b.HTTP, "GEARMAN=" + b.Gearman,
			}))
		case strings.HasPrefix(line, "#"):
			if out.Len() > 0 {
				out.WriteString("\n")
			}
			out.WriteString(line)
		}
	}
	return out.String()
}

// runShell runs one line and returns what it prints, with the exit code if that is not zero.
func runShell(t *testing.T, line string, env []string) string {
	t.Helper()
	var printed bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &printed, &printed
	err := cmd.Run()
	text := printed.String()
	for _, u := range unstable {
		text = u.pattern.ReplaceAllString(text, u.text)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return text + fmt.Sprintf("[exit %d]\n", exit.ExitCode())
	}
	check(t, err)
	return text
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range w {
		if i >= len(g) || w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, w[i],
				strings.Join(g[min(i, len(g)):min(i+3, len(g))], "\n     "))
		}
	}
	return "more was printed: " + strings.Join(g[len(w):], "\n")
}

// TestAnIdleWorkerThatStopsIsNoErrorOfTheBroker stops broker work while it waits for a job.
func TestAnIdleWorkerThatStopsIsNoErrorOfTheBroker(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	w := harness.Spawn(t,
		harness.Command{Argv: []string{harness.Binary(t), "work", "idle", "--server", b.HTTP, "--", "cat"}})
	harness.Eventually(t, func() string {
		if _, text, err := b.Get("/api/v1/workers"); err != nil || !strings.Contains(text, "idle") {
			return fmt.Sprint("it does not wait yet: ", text, err)
		}
		return ""
	})
	check(t, w.Signal(syscall.SIGTERM))
	<-w.Done()
	harness.Eventually(t, func() string {
		if _, text, err := b.Get("/api/v1/workers"); err != nil || strings.Contains(text, "idle") {
			return fmt.Sprint("the broker still has it: ", text, err)
		}
		return ""
	})
	b.Terminate()
	if out := b.Output(); strings.Contains(out, `"level":"error"`) {
		t.Errorf("the log has an error:\n%s", out)
	}
}
