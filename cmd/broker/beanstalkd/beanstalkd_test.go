package beanstalkd

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOptionsAreThoseOfTheReference(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cases := map[string][]string{
		"listen 0.0.0.0:11300, durability none, body 65535, level error":      nil,
		"listen 127.0.0.1:7, durability none, body 65535, level error":        {"-l", "127.0.0.1", "-p7"},
		"listen unix:/run/b, durability none, body 5, level info":             {"-lunix:/run/b", "-z5", "-V"},
		"listen 0.0.0.0:11300, durability sync, body 65535, level debug":      {"-VVf0", "-b", dir},
		"listen 0.0.0.0:11300, durability relaxed, body 65535, level error":   {"-b" + dir, "-s", "10485760", "-c", "-n"},
		"listen 0.0.0.0:11300, durability none, body 1073741824, level error": {"-Fb", dir, "-z", "4000000000"},
	}
	for want, args := range cases {
		var out bytes.Buffer
		code := Main(args, &out, &out, "v", func(l Launch) error {
			c := &l.Config
			got := fmt.Sprintf("listen %s, durability %s, body %d, level %s", c.Beanstalk.Listen, c.Durability, c.Beanstalk.MaxBody, c.Log.Level)
			if got != want {
				t.Errorf("%v: %s, want %s", args, got, want)
			}
			if len(args) > 0 && c.Durability != "none" && c.Data != filepath.Clean(dir) {
				t.Errorf("%v: the jobs are in %s", args, c.Data)
			}
			if c.Workq.Listen != "off" || c.HTTP.Listen != "off" {
				t.Errorf("%v: other ports are open", args)
			}
			return nil
		})
		if code != 0 {
			t.Errorf("%v: exit code %d: %s", args, code, &out)
		}
	}
}

func TestExitCodesAreThoseOfTheReference(t *testing.T) {
	t.Parallel()
	inUse := fmt.Errorf("listen: %w", syscall.EADDRINUSE)
	for _, c := range []struct {
		args string
		run  error
		code int
		text string
	}{
		{"-x", nil, 5, "unknown flag: -x"},
		{"word", nil, 5, "unknown argument: word"},
		{"-p", nil, 5, "requires an argument"},
		{"-z many", nil, 5, "invalid size"},
		{"-p 70000", nil, 5, "invalid size"},
		{"-b /does/not/exist", nil, 10, "not a folder"},
		{"-u no-such-user-here", nil, 33, "no user"},
		{"-v", nil, 0, "beanstalkd 1.12"},
		{"-h", nil, 0, "Options:"},
		{"-c", nil, 0, "no effect"},
		{"", inUse, 111, "in use"},
		{"", errors.New("other"), 1, "other"},
	} {
		var out bytes.Buffer
		code := Main(strings.Fields(c.args), &out, &out, "v", func(Launch) error { return c.run })
		if code != c.code || !strings.Contains(out.String(), c.text) {
			t.Errorf("%q: exit code %d, %s", c.args, code, &out)
		}
	}
}
