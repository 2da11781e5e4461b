package config

import (
	"strings"
	"testing"
	"time"
)

func TestArchiveSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string // empty: valid
	}{
		{"off", func(*Config) {}, ""},
		{"on", func(c *Config) { c.Archive.Dir = "/mnt/archive" }, ""},
		{"nothing is stored", func(c *Config) { c.Archive.Dir, c.Durability = "/mnt/archive", "none" }, "archive.dir"},
		{"in the data folder", func(c *Config) { c.Archive.Dir, c.Data = "/d/data/archive", "/d/data" }, "archive.dir"},
		{"around the data folder", func(c *Config) { c.Archive.Dir, c.Data = "/d", "/d/data" }, "archive.dir"},
		{"beside the data folder", func(c *Config) { c.Archive.Dir, c.Data = "/d/data-archive", "/d/data" }, ""},
		{"too often", func(c *Config) { c.Archive.Every = time.Millisecond }, "archive.every"},
		{"keeps nothing", func(c *Config) { c.Archive.Keep = 0 }, "archive.keep"},
		{"copies all the time", func(c *Config) { c.Archive.BaseEvery = time.Second }, "archive.base_every"},
		{"no queue", func(c *Config) { c.Archive.MaxQueue = 0 }, "archive.max_queue"},
	} {
		cfg := Default()
		c.change(&cfg)
		problems := cfg.problems(nil)
		switch {
		case c.want == "" && len(problems) > 0:
			t.Errorf("%s: %v", c.name, problems)
		case c.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Setting, c.want)):
			t.Errorf("%s: %v, not a problem of %s", c.name, problems, c.want)
		}
	}
}
