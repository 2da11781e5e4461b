package config

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzFile: any file results in settings or in a list of problems, and the text form of accepted settings is accepted
// again.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"data = \"/x\"\ndurability = \"relaxed\"\nsync_interval = \"50ms\"\ncache_bytes = \"1 MiB\"\nevent_loops = 2\n",
		"[gearman]\nlisten = \"127.0.0.1:1,unix:/x\"\nallow = [\"10.0.0.0/8\", \"::1\"]\nmax_body = 5\njob_retries = 3\n",
		"[[route]]\nfrom = \"gearman\"\nmatch = {queue = \"a\"}\nset = {queue = \"b\", type = \"c\"}\n",
		"[throttles]\nmail = {concurrency = 4, timeout = 60}\n",
		"[keep_done]\nmail = {for = \"24h\", count = 60}\n\"*\" = {count = 1}\n",
		"[[cron]]\nschedule = \"*/5 * * * *\"\n  [cron.job]\n  type = \"T\"\n  args = [1, \"two\"]\n  queue = \"q\"\n",
		"http = 1\n[log]\nlevel = 7\n", "x = ", "",
	} {
		f.Add([]byte(seed))
	}
	name := filepath.Join(f.TempDir(), "broker.toml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(Sources{File: name})
		if err != nil {
			return
		}
		flags := make(map[string]string)
		for _, s := range Settings(&c) {
			flags[s.Path] = s.String()
		}
		again, err := Load(Sources{Flags: flags})
		if err != nil {
			t.Fatalf("%q: taken, but not as flags %v: %v", text, flags, err)
		}
		if changed := again.Changed(&c); len(changed) > 0 {
			t.Fatalf("%q: %v changed on the way", text, changed)
		}
	})
}
