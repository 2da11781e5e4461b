package beanstalkd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOptionsMatchTheReference(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cases := map[string][]string{
		"listen 0.0.0.0:11300, durability none, body 65535, level error": nil,
		"listen 127.0.0.1:7, durability none, body 65535, level error":   {"-l", "127.0.0.1", "-p7"},
		"listen unix:/run/b, durability none, body 5, level info":        {"-lunix:/run/b", "-z5", "-V"},
		"listen 0.0.0.0:11300, durability sync, body 65535, level debug": {"-VVf0", "-b", dir},
		"listen 0.0.0.0:11300, durability relaxed, body 65535, level error": {
			"-b" + dir, "-s", "10485760", "-c", "-n",
		},
		"listen 0.0.0.0:11300, durability none, body 1073741824, level error": {"-Fb", dir, "-z", "4000000000"},
	}
	for want, args := range cases {
		var out bytes.Buffer
		code := Main(args, &out, &out, "v", func(l Launch) error {
			c := &l.Config
			got := fmt.Sprintf("listen %s, durability %s, body %d, level %s", c.Beanstalk.Listen, c.Durability,
				c.Beanstalk.MaxBody, c.Log.Level)
			if got != want {
				t.Errorf("%v: %s, want %s", args, got, want)
			}
			if len(args) > 0 && c.Durability != "none" && c.Data != filepath.Clean(dir) {
				t.Errorf("%v: the jobs are in %s", args, c.Data)
			}
			if !c.Workq.Listen.Off() || !c.HTTP.Listen.Off() {
				t.Errorf("%v: other ports are open", args)
			}
			return nil
		})
		if code != 0 {
			t.Errorf("%v: exit code %d: %s", args, code, &out)
		}
	}
}

func TestBinlogOfARealBeanstalkdIsNamedWithItsImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func() (code int, text string) {
		var out bytes.Buffer
		code = Main([]string{"-b", dir}, &out, &out, "v", func(Launch) error { return nil })
		return code, out.String()
	}
	write("binlog.17")
	code, text := run()
	if code != exitData || !strings.Contains(text, filepath.Join(dir, "binlog.17")+" is the binlog of a beanstalkd") ||
		!strings.Contains(text, "broker import --from beanstalkd 127.0.0.1:11301") {
		t.Errorf("exit code %d: %s", code, text)
	}
	write("FORMAT") // of a store that is there already
	if code, text := run(); code != 0 {
		t.Errorf("beside a store: exit code %d: %s", code, text)
	}
}

func TestExitCodesMatchTheReference(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := errors.New("broken")
	stages := map[string]func(Launch) error{
		"":       func(Launch) error { return nil },
		"listen": func(Launch) error { return broken },
		"open":   func(l Launch) error { return errors.Join(l.OnBound(), broken) },
		"serve":  func(l Launch) error { return errors.Join(l.OnBound(), l.OnReady(), broken) },
	}
	for _, c := range []struct {
		args string
		ends string // where the broker fails; empty: nowhere
		code int
		text string
	}{
		{"-x", "", 5, "unknown flag: -x"},
		{"word", "", 5, "unknown argument: word"},
		{"-p", "", 5, "requires an argument"},
		{"-z many", "", 5, "invalid size"},
		{"-p 70000", "", 5, "invalid size"},
		{"-b /does/not/exist", "", 10, "not a folder"},
		{"-u no-such-user-here", "", 33, "no user"},
		{"-v", "", 0, "beanstalkd 1.12"},
		{"-h", "", 0, "Options:"},
		{"-c", "", 0, "no effect"},
		{"", "listen", 111, "broken"},
		{"-b " + dir, "listen", 111, "broken"},
		{"-b " + dir, "open", 10, "broken"},
		{"-b " + dir, "serve", 1, "broken"},
		{"", "open", 1, "broken"},
	} {
		var out bytes.Buffer
		code := Main(strings.Fields(c.args), &out, &out, "v", stages[c.ends])
		if code != c.code || !strings.Contains(out.String(), c.text) {
			t.Errorf("%q: exit code %d, %s", c.args, code, &out)
		}
	}
}
