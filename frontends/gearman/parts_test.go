package gearman

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/frontends"
)

func TestEveryCoreErrorHasARow(t *testing.T) {
	t.Parallel()
	for _, kind := range core.Errors {
		row := wireErrors[kind]
		if row.code == "" || row.message == "" || !strings.HasPrefix(row.line, "ERR ") ||
			!strings.HasSuffix(row.line, "\r\n") {
			t.Errorf("%v: row %+v", kind, row)
		}
	}
	if len(wireErrors) != len(core.Errors) {
		t.Errorf("%d rows for %d kinds", len(wireErrors), len(core.Errors))
	}
}

func TestWrappedErrorsHaveTheirRow(t *testing.T) {
	t.Parallel()
	wrapped := fmt.Errorf("submit to %q: %w", "f", core.ErrFull)
	if got := packetError(wrapped, nil); got != (wireError{"QUEUE_ERROR", "Job queue is full"}) {
		t.Errorf("packet %v", got)
	}
	if got := packetError(core.ErrNotHolder, &errNoSuchData); got != errNoSuchData {
		t.Errorf("packet %v", got)
	}
	if got := lineError(fmt.Errorf("drop: %w", core.ErrNoQueue)); got != "ERR function not found\r\n" {
		t.Errorf("line %q", got)
	}
	if packetError(errors.New("strange"), nil).code == "" || lineError(errors.New("strange")) == "" {
		t.Error("nothing is said of an unknown error")
	}
}

func TestUniqueIsRestoredFromTheKey(t *testing.T) {
	t.Parallel()
	plain, routed := &name{function: "f"}, &name{function: "f", routed: true}
	other := &name{function: "g", routed: true}
	key := func(n *name, unique, body string) string {
		return string(appendKey(nil, n, []byte(unique), []byte(body)))
	}
	for _, n := range []*name{plain, routed} {
		for _, unique := range []string{"u", strings.Repeat("u", 64), "-"} {
			job := &core.Job{Origin: core.Gearman, UniqueKey: key(n, unique, "body")}
			if got := uniqueOf(job); got != unique {
				t.Errorf("routed %v: %q comes back as %q", n.routed, unique, got)
			}
		}
	}
	if key(plain, "", "body") != "" || key(plain, "-", "") != "" {
		t.Error("a key without anything that is unique")
	}
	same := key(plain, "-", "a")
	if key(plain, "-", "a") != same || key(plain, "-", "b") == same {
		t.Error("the key of - does not follow the workload")
	}
	if key(routed, "u", "") == key(other, "u", "") || key(routed, "-", "a") == key(other, "-", "a") {
		t.Error("two functions in one queue share a key")
	}
	if got := uniqueOf(&core.Job{Origin: core.Faktory, ID: "jid", UniqueKey: "\x02ux"}); got != "jid" {
		t.Errorf("a job of another protocol is called %q", got)
	}
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	b := addAttribute(addAttribute(nil, attrUnique, []byte("-")), attrReducer, []byte(strings.Repeat("r", 300)))
	if got := attribute(b, attrReducer); len(got) != 300 {
		t.Errorf("reducer of %d bytes", len(got))
	}
	if got := string(attribute(b, attrUnique)); got != "-" {
		t.Errorf("unique %q", got)
	}
	for _, broken := range [][]byte{
		nil, {'r'}, {'r', 5, 'x'}, {'r', 0xff}, {'r', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
	} {
		if got := attribute(broken, attrReducer); got != nil {
			t.Errorf("%x holds %q", broken, got)
		}
	}
}

// FuzzAttribute: a stored attribute is found after any other attributes, and no input causes a panic.
func FuzzAttribute(f *testing.F) {
	f.Add([]byte("u\x01x"), byte('r'), []byte("reducer"))
	f.Fuzz(func(t *testing.T, b []byte, tag byte, value []byte) {
		for _, known := range []byte{attrUnique, attrReducer, tag} {
			if len(attribute(b, known)) > len(b) {
				t.Errorf("%x holds more than there is", b)
			}
		}
		other := addAttribute(nil, tag+1, b)
		if got := attribute(addAttribute(other, tag, value), tag); !bytes.Equal(got, value) {
			t.Errorf("%x behind %x: %x", value, b, got)
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	o := Options{Options: frontends.Options{Namespace: "g.", Route: func(queue, typ string) (string, string) {
		switch queue {
		case "Resize":
			return "default", "Resize"
		case "moved":
			return "there", "there"
		}
		return queue, typ
	}}}
	for function, want := range map[string]name{
		"plain":  {function: "plain", queue: "g.plain", target: "g.plain", typ: "plain"},
		"Resize": {function: "Resize", queue: "g.Resize", target: "default", typ: "Resize", routed: true},
		"moved":  {function: "moved", queue: "g.moved", target: "there", typ: "", routed: true},
	} {
		if got := *newName(function, &o); got != want {
			t.Errorf("%s: %+v, want %+v", function, got, want)
		}
	}
	if got := *newName("f", &Options{}); got != (name{function: "f", queue: "f", target: "f"}) {
		t.Errorf("without a namespace: %+v", got)
	}
	var s names
	for i := range 2 * maxNames {
		s.of(fmt.Append(nil, i), &o)
	}
	if len(s.all) > maxNames {
		t.Errorf("%d names remembered", len(s.all))
	}
	s = names{}
	for i := range 100 {
		long := fmt.Appendf(nil, "%d%s", i, strings.Repeat("x", core.MaxQueueName))
		if s.of(long, &o).valid() || !s.of(long[:core.MaxQueueName], &Options{}).valid() {
			t.Errorf("name %d: a queue cannot have %d bytes, but %d", i, len(long), core.MaxQueueName)
		}
	}
	for function := range s.all {
		if len(function) > core.MaxQueueName {
			t.Fatalf("a name of %d bytes is kept", len(function))
		}
	}
	if len(s.all) != 100 {
		t.Errorf("%d names are kept, want 100", len(s.all))
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		at core.Instant
		ok bool
	}{
		"0": {0, true}, "1700000000": {1_700_000_000_000_000, true}, "253402300799": {253402300799_000_000, true},
		"253402300800": {253402300799_000_000, true}, "9223372036854775807": {253402300799_000_000, true},
		"9223372036854775808": {}, "18446744073709551617": {}, "99999999999999999999999": {}, "": {}, "abc": {},
		"-5": {}, "12x": {}, " 1": {},
	} {
		if at, ok := parseEpoch([]byte(in)); ok != want.ok || ok && at != want.at {
			t.Errorf("epoch %q: %d, %v", in, at, ok)
		}
	}
	for in, want := range map[string]time.Duration{
		"": 0, "0": 0, "-1": 0, "abc": 0, "1": time.Second, "999": time.Second, "1001": 1001 * time.Millisecond,
		"99999999999999999999": 100 * 365 * 24 * time.Hour,
	} {
		if got := parseTimeout([]byte(in)); got != want {
			t.Errorf("timeout %q: %v, want %v", in, got, want)
		}
	}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 12, 30, 20, 0, time.UTC) // a Tuesday
	for fields, want := range map[string]string{
		"||||":          "2030-01-01 12:31",
		"*|*|*|*|*":     "2030-01-01 12:31",
		"30||||":        "2030-01-01 13:30",
		"30|12|||":      "2030-01-02 12:30",
		"31|12|||":      "2030-01-01 12:31",
		"0|0|29|2|":     "2032-02-29 00:00",
		"0|0|29|2|0":    "2044-02-29 00:00",
		"0|9|||0":       "2030-01-07 09:00",
		"0|9|||6":       "2030-01-06 09:00",
		"0|0|31||":      "2030-01-31 00:00",
		"05|007|01|2|*": "2030-02-01 07:05",
	} {
		f := strings.Split(fields, "|")
		c, ok := parseSchedule([]byte(f[0]), []byte(f[1]), []byte(f[2]), []byte(f[3]), []byte(f[4]))
		if !ok {
			t.Errorf("%s is refused", fields)
			continue
		}
		at, ok := c.next(now)
		if got := at.Format("2006-01-02 15:04"); !ok || got != want {
			t.Errorf("%s: %s %v, want %s", fields, got, ok, want)
		}
	}
	for _, bad := range []string{
		"60||||", "|24|||", "||0||", "||32||", "|||0|", "|||13|", "||||7", "x||||", "-1||||", "1.5||||",
	} {
		f := strings.Split(bad, "|")
		if _, ok := parseSchedule([]byte(f[0]), []byte(f[1]), []byte(f[2]), []byte(f[3]), []byte(f[4])); ok {
			t.Errorf("%s is taken", bad)
		}
	}
	if at, ok := (schedule{minute: 0, hour: 0, day: 31, month: 4, weekday: anyValue}).next(now); ok {
		t.Errorf("a 31st of April: %v", at)
	}
	whole := time.Date(2030, 1, 1, 12, 30, 0, 0, time.UTC)
	if at, _ := (schedule{
		minute: 30, hour: anyValue, day: anyValue, month: anyValue, weekday: anyValue,
	}).next(whole); at != whole {
		t.Errorf("a minute that begins now is put off until %v", at)
	}
}

func TestRegistryListsNewestFunctionsFirst(t *testing.T) {
	t.Parallel()
	var r workerRegistry
	worker := r.add(2, 11, "10.0.0.2")
	asker := r.add(1, 10, "10.0.0.1")
	r.setID(worker, "my id")
	for _, f := range []string{"a", "b", "a", "c"} {
		r.register(worker, f)
	}
	list := func() string {
		var b []byte
		for _, w := range r.snapshot() {
			b = w.write(b)
		}
		return string(b)
	}
	want := "10 10.0.0.1 - :\n11 10.0.0.2 my id : c a b a\n"
	if got := list(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r.unregister(worker, "a")
	r.remove(asker)
	if got := list(); got != "11 10.0.0.2 my id : c b\n" {
		t.Errorf("after changes: %q", got)
	}
	r.reset(worker)
	if got := list(); got != "11 10.0.0.2 my id :\n" {
		t.Errorf("after a reset: %q", got)
	}
}

func TestIPOf(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]net.Addr{
		"10.0.0.1": &net.TCPAddr{IP: net.ParseIP("::ffff:10.0.0.1"), Port: 1},
		"::1":      &net.TCPAddr{IP: net.IPv6loopback, Port: 1},
		"-":        &net.UnixAddr{Name: "/run/x", Net: "unix"},
	} {
		if got := ipOf(a); got != want {
			t.Errorf("%v: %s, want %s", a, got, want)
		}
	}
}
