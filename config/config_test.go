package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// write creates a file in a temporary folder.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	c, err := Load(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Settings(&c) {
		if s.Doc == "" {
			t.Errorf("%s has no explanation", s.Path)
		}
	}
	if c.Workq.Listen.String() != "127.0.0.1:9922" || c.Gearman.Listen.String() != "127.0.0.1:4730" ||
		c.Faktory.Listen.String() != "127.0.0.1:7419" || c.HTTP.Listen.String() != "127.0.0.1:7420" {
		t.Errorf("default addresses: %+v", c)
	}
}

func TestFileThenEnvironmentThenFlags(t *testing.T) {
	t.Parallel()
	file := write(t, "broker.toml", `
data = "/from/file"
durability = "relaxed"
sync_interval = "250ms"
cache_bytes = "8 MiB"
min_free_disk = 12345

[gearman]
listen = "127.0.0.1:1111"
exceptions = true
job_retries = 3

[workq]
max_body = "2MiB"
`)
	c, err := Load(Sources{
		File: file,
		Env: []string{
			"BROKER_DATA=/from/env", "BROKER_GEARMAN_LISTEN=127.0.0.1:2222", "BROKER_GEARMAN_JOB_RETRIES=4",
			"BROKER_SERVICE_HOST=10.0.0.1", "FAKTORY_PASSWORD=old", "BROKER_FAKTORY_PASSWORD=new", "OTHER",
		},
		Flags: map[string]string{"data": "/from/flag"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]any{
		"flag over environment":    {c.Data, "/from/flag"},
		"environment over file":    {c.Gearman.Listen.String(), "127.0.0.1:2222"},
		"number from environment":  {c.Gearman.JobRetries, 4},
		"file over default":        {c.Durability, "relaxed"},
		"span":                     {c.SyncInterval, 250 * time.Millisecond},
		"size with unit":           {c.CacheBytes, 8 * MiB},
		"size close to its unit":   {c.Workq.MaxBody, 2 * MiB},
		"plain size":               {c.MinFreeDisk, Size(12345)},
		"bool":                     {c.Gearman.Exceptions, true},
		"our password over theirs": {c.Faktory.Password, "new"},
		"untouched default":        {c.DefaultLease, 30 * time.Minute},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %v, want %v", what, pair[0], pair[1])
		}
	}
}

func TestFileNamedByTheEnvironment(t *testing.T) {
	t.Parallel()
	file := write(t, "broker.toml", "data = \"/named\"\n")
	c, err := Load(Sources{Env: []string{"BROKER_CONFIG=" + file}})
	if err != nil || c.Data != "/named" {
		t.Errorf("data %q, %v", c.Data, err)
	}
}

func TestEveryProblemIsListedAtOnce(t *testing.T) {
	t.Parallel()
	file := write(t, "broker.toml", `
datta = "x"
durability = "always"
sync_interval = 5
min_free_disk = "lots"
event_loops = "two"

[gearman]
listen = "localhost"
hamdle_prefix = "x"
handle_prefix = "with space"
worker_wakeup = -2
tls_key = "/nowhere/key.pem"

[faktory]
listen = "127.0.0.1:9922"
flush = "some"
tls_client_ca = "ca.pem"

[nowhere]
x = 1

[[route]]
from = "gearman"
set = {queue = "default"}

[[route]]
from = "nsq"
match = {queue = "x"}
set = {type = "y"}
colour = "red"

[throttles]
a = 4
b = {timeout = 60}
c = {concurrency = 4, timeout = 60}

[keep_done]
a = {for = "x"}
b = {}
"*" = {for = "24h", count = 5}
d = {count = -1}
`)
	_, err := Load(Sources{
		File: file, Env: []string{"BROKER_LOG_LEVEL=loud"}, Flags: map[string]string{"workq.max_connections": "many"},
	})
	if err == nil {
		t.Fatal("all of that was accepted")
	}
	var settings []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		settings = append(settings, strings.SplitN(line, ": ", 2)[0])
	}
	got := strings.Join(settings, " ")
	want := "route[1].colour throttles.a keep_done.a.for datta event_loops gearman.hamdle_prefix gearman.listen min_free_disk nowhere sync_interval " +
		"workq.max_connections " +
		"durability log.level gearman.tls_cert faktory.listen faktory.tls_client_ca gearman.worker_wakeup " +
		"gearman.handle_prefix faktory.flush route[0] route[1].from keep_done.a keep_done.b keep_done.d.count"
	if got != want {
		t.Errorf("got  %s\nwant %s\n%v", got, want, err)
	}
}

func TestSyntaxErrorIsReportedWithItsLine(t *testing.T) {
	t.Parallel()
	file := write(t, "broker.toml", "data = \"x\"\n\nlog = = 1\n")
	_, err := Load(Sources{File: file})
	if err == nil || !strings.HasPrefix(err.Error(), file+": line 3: ") {
		t.Errorf("got %v", err)
	}
	_, err = Load(Sources{File: "/nowhere/broker.toml"})
	if err == nil || err.Error() != "/nowhere/broker.toml: no such file or directory" {
		t.Errorf("got %v", err)
	}
}

func TestPasswordMayBeInAFile(t *testing.T) {
	t.Parallel()
	secret := write(t, "secret", "  s3cret\n")
	for _, env := range []string{"FAKTORY_PASSWORD=", "BROKER_FAKTORY_PASSWORD="} {
		c, err := Load(Sources{Env: []string{env + secret}})
		if err != nil || c.Faktory.Password != "s3cret" {
			t.Errorf("%s: %q, %v", env, c.Faktory.Password, err)
		}
	}
	empty := write(t, "empty", "\n")
	for _, path := range []string{empty, "/nowhere/secret"} {
		_, err := Load(Sources{Flags: map[string]string{"faktory.password": path}})
		if err == nil || !strings.HasPrefix(err.Error(), "faktory.password: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestParseAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"off":                              "off",
		"127.0.0.1:9922":                   "127.0.0.1:9922",
		"localhost:0":                      "localhost:0",
		":4730":                            ":4730",
		"[::1]:4730, unix:/run/g.sock":     "[::1]:4730,unix:/run/g.sock",
		"unix:":                            "error",
		"4730":                             "error",
		"host:":                            "error",
		"host:http":                        "error",
		"host:65536":                       "error",
		"::1:4730":                         "error",
		"":                                 "error",
		"unix:" + strings.Repeat("x", 108): "error",
	} {
		addresses, err := ParseAddresses(text)
		got := fmt.Sprint(addresses)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: got %s (%v), want %s", text, got, err, want)
		}
	}
}

func TestRoutesRewriteTheFirstMatch(t *testing.T) {
	t.Parallel()
	c := Config{Routes: []Route{
		{From: "gearman", Match: Target{Queue: "Resize"}, Set: Target{Queue: "default", Type: "ResizeImage"}},
		{From: "gearman", Match: Target{Queue: "Resize"}, Set: Target{Queue: "never"}},
		{From: "faktory", Match: Target{Type: "ResizeImage"}, Set: Target{Queue: "Resize"}},
		{From: "faktory", Match: Target{Queue: "low"}, Set: Target{Type: "Later"}},
	}}
	for _, test := range []struct{ from, queue, typ, wantQueue, wantType string }{
		{"gearman", "Resize", "Resize", "default", "ResizeImage"},
		{"gearman", "Other", "Other", "Other", "Other"},
		{"faktory", "default", "ResizeImage", "Resize", "ResizeImage"},
		{"faktory", "low", "X", "low", "Later"},
		{"faktory", "default", "X", "default", "X"},
	} {
		queue, typ := c.Rewrite(test.from)(test.queue, test.typ)
		if queue != test.wantQueue || typ != test.wantType {
			t.Errorf("%+v: got %s, %s", test, queue, typ)
		}
	}
	if c.Rewrite("workq") != nil {
		t.Error("a rewrite for workq out of nothing")
	}
}

func TestRoutesThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`from = "gearman" | match = {queue = "a"} | set = {queue = "b"}`:  "<nil>",
		`from = "faktory" | match = {type = "a"} | set = {type = "b"}`:    "<nil>",
		`from = "faktory" | set = {type = "b"}`:                           "route[0]: matches nothing: match.queue or match.type is missing (FILE, line 1)",
		`from = "workq" | set = {type = "b"}`:                             "route[0]: matches nothing: match.queue is missing (FILE, line 1)",
		`from = "workq" | match = {queue = "a"}`:                          "route[0]: changes nothing: set.queue or set.type is missing (FILE, line 1)",
		`from = "gearman" | match = {type = "a"} | set = {queue = "b"}`:   "route[0].match.type: only jobs of faktory, qless, conveyor and sqs have a type of their own: use match.queue (FILE, line 3)",
		`from = "workq" | match = {queue = "a"} | set = {queue = "b c"}`:  `route[0].set.queue: "b c" contains a space or a control character (FILE, line 4)`,
		`from = "workq" | match = {queue = "a"} | set = {colour = "red"}`: "route[0].set.colour: unknown setting (FILE, line 4)\nroute[0]: changes nothing: set.queue or set.type is missing (FILE, line 1)",
	} {
		file := write(t, "broker.toml", "[[route]]\n"+strings.ReplaceAll(text, " | ", "\n"))
		_, err := Load(Sources{File: file})
		if got := strings.ReplaceAll(fmt.Sprint(err), file, "FILE"); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestOldNamesAreRefusedWithTheNewOnes(t *testing.T) {
	t.Parallel()
	file := write(t, "broker.toml", `
disk_floor = "1 GiB"
drain_refuses_jobs = true

[[route]]
from = "faktory"
name = "a"
type = "b"
queue = "c"
new_type = "d"
`)
	_, err := Load(Sources{File: file, Env: []string{"BROKER_DISK_FLOOR=0", "BROKER_DRAIN_REFUSES_JOBS="}})
	want := `route[0].name: was renamed to match.queue (FILE, line 7)
route[0].new_type: was renamed to set.type (FILE, line 10)
route[0].queue: was renamed to set.queue (FILE, line 9)
route[0].type: was renamed to match.type (from Faktory) or set.type (FILE, line 8)
disk_floor: was renamed to min_free_disk (FILE, line 2)
drain_refuses_jobs: was renamed to drain_rejects_new_jobs (FILE, line 3)
BROKER_DISK_FLOOR: was renamed to BROKER_MIN_FREE_DISK
route[0]: matches nothing: match.queue or match.type is missing (FILE, line 5)
route[0]: changes nothing: set.queue or set.type is missing (FILE, line 5)`
	if got := strings.ReplaceAll(fmt.Sprint(err), file, "FILE"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestSizesReadBackAsTheyAreShown(t *testing.T) {
	t.Parallel()
	for _, size := range []Size{0, 1, 1023, KiB, 1536, 64 * MiB, 3 * GiB, 3*GiB + 1} {
		var got Size
		err := got.parse(size.String())
		if err != nil || got != size {
			t.Errorf("%d shown as %s reads as %d, %v", size, size, got, err)
		}
	}
	for _, text := range []any{"x", "1 TB", "-1 KiB", "9999999999 GiB", 1.5, true} {
		if err := new(Size).parse(text); err == nil {
			t.Errorf("%v is taken for a size", text)
		}
	}
}

func TestLoopback(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true, "unix:/x": true,
		"0.0.0.0:1": false, ":1": false, "[::]:1": false, "example.org:1": false, "[::ffff:127.0.0.1]:1": true,
	} {
		a, err := parseAddress(address)
		if err != nil || a.Loopback() != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestHTTPReachableFromOtherHostsRequiresAuthentication(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[http]\nlisten = \":7420\"\nallow = [\"10.0.0.0/8\"]\n":  "http.listen: other hosts can reach :7420: set http.password, http.tls_client_ca or principals (FILE, line 2)",
		"[http]\nlisten = \":7420\"\n":                            "http.listen: other hosts can reach :7420: set http.password, http.tls_client_ca or principals (FILE, line 2)",
		"[http]\nlisten = \"127.0.0.1:1, 10.0.0.1:1\"\n":          "http.listen: other hosts can reach 10.0.0.1:1: set http.password, http.tls_client_ca or principals (FILE, line 2)",
		"[http]\nlisten = \":7420\"\npassword = \"x\"\n":          "<nil>",
		"[http]\nlisten = \":7420\"\n[faktory]\npassword=\"x\"\n": "http.listen: other hosts can reach :7420: set http.password, http.tls_client_ca or principals (FILE, line 2)",
		"[http]\nlisten = \"unix:/run/b.sock\"\n":                 "<nil>",
	} {
		file := write(t, "broker.toml", text)
		_, err := Load(Sources{File: file})
		if got := strings.ReplaceAll(fmt.Sprint(err), file, "FILE"); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestAllowLists(t *testing.T) {
	t.Parallel()
	c, err := Load(Sources{
		File: write(t, "broker.toml", "[workq]\nallow = [\"10.1.2.3/16\", \"::1\"]\n"),
		Env:  []string{"BROKER_GEARMAN_ALLOW=127.0.0.1, 10.0.0.0/8"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		list Networks
		want string
	}{
		{c.Workq.Allow, "10.1.0.0/16,::1"},
		{c.Gearman.Allow, "127.0.0.1,10.0.0.0/8"},
		{c.Faktory.Allow, ""},
	} {
		if got := test.list.String(); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
	for _, text := range []string{"allow = [\"10.1\"]", "allow = [4]", "allow = [\"example.org\"]"} {
		if _, err := Load(Sources{File: write(t, "broker.toml", "[http]\n"+text+"\n")}); err == nil {
			t.Errorf("%s is good", text)
		}
	}
}
