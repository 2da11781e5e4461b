package schema

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/core"
)

// TestEveryRowIsASettingOfThePolicy reads each row with a value, and shows it again.
func TestEveryRowIsASettingOfThePolicy(t *testing.T) {
	t.Parallel()
	values := map[Unit]string{
		Count: "3", Seconds: "1.5", Waits: `[1,60]`, Ending: `{"move":"r"}`, Word: `"none"`,
	}
	var all core.PolicyFields
	for _, r := range PolicyRows {
		if r.Name == "" || r.Label == "" || r.Help == "" || values[r.Unit] == "" {
			t.Errorf("%+v lacks a name, a label, a help or a unit", r)
		}
		text := `{"` + r.Name + `":` + values[r.Unit] + `}`
		set, _, err := ParsePolicy("p", json.RawMessage(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if shown, _ := json.Marshal(ShowPolicy(&core.PolicyInfo{JobPolicy: set})); string(shown) != text {
			t.Errorf("%s is shown as %s", text, shown)
		}
		all |= set.Has
	}
	if all != core.AllPolicyFields || len(policyFields) != len(PolicyRows) {
		t.Errorf("the rows set the fields %b, want %b", all, core.AllPolicyFields)
	}
}

func TestBoundsAreThoseOfTheRow(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"max_fails":-1}`, `{"max_fails":4294967296}`, `{"max_fails":1.5}`, `{"lease_for_s":0}`, `{"lease_for_s":-1}`,
		`{"expires_in_s":315360001}`, `{"retain_for_s":"1h"}`, `{"durability":"sync"}`, `{"durability":7}`,
	} {
		var wrong *Error
		if _, _, err := ParsePolicy("p", json.RawMessage(text)); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if r := find(PolicyRows, "lease_for_s"); r.High != core.MaxBackoff.Seconds() || r.High != longest {
		t.Errorf("the longest lease is %v s, the core has %v", r.High, core.MaxBackoff)
	}
}

func TestBackoffsAreTheSameInEveryForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10s,1m, 600":              `[10,60,600]`,
		"0":                        `[0]`,
		"constant:":                `{"kind":"constant","base_s":0}`,
		"linear:1.5":               `{"kind":"linear","base_s":1.5}`,
		"exponential:2s:10m:0.5":   `{"kind":"exponential","base_s":2,"max_s":600,"jitter":0.5}`,
		"exponential:250ms::0.125": `{"kind":"exponential","base_s":0.25,"jitter":0.125}`,
	} {
		value, err := find(PolicyRows, "backoff").Value(text)
		if err != nil || string(value) != want {
			t.Errorf("%s: %s, %v, want %s", text, value, err, want)
			continue
		}
		rule, err := readBackoff("backoff", value)
		if again := writeBackoff(&rule); err != nil || string(again) != want {
			t.Errorf("%s: %s, %v", want, again, err)
		}
		words := backoffOf(value)
		again, err := words.JSON()
		if err != nil || string(again) != want {
			t.Errorf("%+v: %s, %v, want %s", words, again, err, want)
		}
	}
	for text, field := range map[string]string{
		"soon": "waits", "10s,": "waits", "linear:x": "waits", "linear:1:x": "backoff_max", "linear:1:2:x": "jitter",
		"linear:NaN": "waits", "1e300": "waits",
	} {
		_, err := find(PolicyRows, "backoff").Value(text)
		if got, _, ok := FieldOf(err); !ok || got != field {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestTimesAreShortAndReadAgain(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 1500 * time.Millisecond: "1.5s", time.Minute: "1m", 90 * time.Second: "1m30s", time.Hour: "1h",
		61 * time.Minute: "1h1m", time.Hour + time.Second: "1h0m1s", 48 * time.Hour: "2d", 25 * time.Hour: "25h",
		10 * time.Minute: "10m", 10 * time.Hour: "10h", 20 * time.Second: "20s",
	} {
		again, err := ParseSpan(want)
		if got := Span(d); got != want || again != d || err != nil {
			t.Errorf("%v is %s, want %s, which is read as %v, %v", d, got, want, again, err)
		}
	}
	for _, text := range []string{"", "1", "xd", "1y", "NaNd", "1e300d"} {
		if d, err := ParseSpan(text); err == nil {
			t.Errorf("%q is read as %v", text, d)
		}
	}
}

func TestWordsOfJobsAndPolicies(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]core.Exhausted{
		"dead": core.ExhaustedBury, "bury": core.ExhaustedBury, "drop": core.ExhaustedFinish,
		"finish": core.ExhaustedFinish,
	} {
		end, err := readExhausted("f", encode(word))
		if got, known := EndOf(word); !known || got != want || err != nil || end.Then != want {
			t.Errorf("%s: %v, %v, %+v, %v", word, got, known, end, err)
		}
	}
	if _, known := EndOf("move"); known {
		t.Error("a job cannot say a queue")
	}
	words := slices.DeleteFunc(slices.Clone(Ends), func(c Choice) bool { _, known := EndOf(c.Word); return known })
	if !reflect.DeepEqual(words, []Choice{{MoveWord, "to a queue"}}) {
		t.Errorf("words that a form offers and nothing reads: %v", words)
	}
	if !slices.EqualFunc(Kinds[1:], backoffKinds[:], func(c Choice, kind string) bool { return c.Word == kind }) {
		t.Errorf("a form offers %v, of %v", Kinds, backoffKinds)
	}
}

func TestFormIsReadAsItWasFilled(t *testing.T) {
	t.Parallel()
	members := map[string]json.RawMessage{
		"max_fails": []byte("5"), "max_attempts": []byte("null"), "lease_for_s": []byte("90"),
		"expires_in_s": []byte("null"),
		"retain_for_s": []byte("172800"), "backoff": []byte(`{"kind":"linear","base_s":2,"max_s":60}`),
		"on_exhausted": []byte(`{"move":"r"}`), "durability": []byte(`"none"`),
	}
	values := map[string]string{}
	for _, f := range Fields(PolicyRows, members) {
		values[f.Name] = f.Value
	}
	if values["lease_for"] != "1m30s" || values["retain_for"] != "2d" || values["move_to"] != "r" {
		t.Errorf("the form shows %v", values)
	}
	again, err := ReadFields(PolicyRows, func(name string) string { return values[name] })
	if err != nil || !reflect.DeepEqual(again, members) {
		t.Errorf("%s, %v, want %s", again, err, members)
	}
	_, err = ReadFields(PolicyRows, func(name string) string { return map[string]string{"max_fails": "x"}[name] })
	if field, _, ok := FieldOf(err); !ok || field != "max_fails" {
		t.Errorf("a wrong number: %v", err)
	}
}

// TestEveryRowIsASettingOfTheThrottle sets each row, reads it as a change, and looks for it in the core and in words.
func TestEveryRowIsASettingOfTheThrottle(t *testing.T) {
	t.Parallel()
	if fields := reflect.TypeFor[core.Throttle]().NumField(); fields != len(ThrottleRows) {
		t.Errorf("the core has %d settings, the schema %d", fields, len(ThrottleRows))
	}
	if change := rowsOf[ThrottleChange](); !reflect.DeepEqual(change, ThrottleRows) {
		t.Errorf("a change has other settings: %v", change)
	}
	seen := map[core.Throttle]bool{{}: true}
	for _, r := range ThrottleRows {
		if r.Name == "" || r.Label == "" || r.Help == "" || r.Says == "" || r.Unit == "" || r.High == 0 {
			t.Errorf("%+v lacks something", r)
		}
		set, old, err := ParseThrottle("l", json.RawMessage(`{"`+r.Name+`":3}`))
		if err != nil || len(old) != 0 {
			t.Fatalf("%s: %v, %v", r.Name, old, err)
		}
		var change ThrottleChange
		if err := json.Unmarshal([]byte(`{"`+r.Name+`":3}`), &change); err != nil {
			t.Fatal(err)
		}
		in := set.Core()
		if seen[in] || change.Over(core.Throttle{}) != in || ThrottleOf(&in) != set || set.String() == "" {
			t.Errorf("%s is %+v in the core, %+v as a change, %q in words", r.Name, in, change.Over(core.Throttle{}), set.String())
		}
		seen[in] = true
		if err := CheckThrottle("l", &Throttle{RatePerS: r.High + 1}); r.Unit == Rate && err == nil {
			t.Error("a rate that is too high is accepted")
		}
	}
	all := core.Throttle{Leased: 1, LeasedPerWorker: 2, SlotFor: time.Minute, Rate: 0.5, Burst: 4}
	if kept := new(ThrottleChange).Over(all); kept != all {
		t.Errorf("a change of nothing makes %+v", kept)
	}
	words := ThrottleOf(&all)
	if got := words.String(); got != "1 at once, 2 per worker, slots for 1m, 0.5/s, burst 4" {
		t.Errorf("in words: %s", got)
	}
	if r := find(ThrottleRows, "rate_per_s"); r.High != core.MaxRate {
		t.Errorf("the highest rate is %v, the core has %v", r.High, core.MaxRate)
	}
}

func TestChangesOfThrottlesHaveBounds(t *testing.T) {
	t.Parallel()
	for _, bad := range []float64{-1, 3153600001} {
		if field, _, ok := FieldOf(CheckThrottle("l", &ThrottleChange{SlotForS: &bad})); !ok || field != "l.slot_for_s" {
			t.Errorf("%v is accepted", bad)
		}
	}
	if err := CheckThrottle("l", &ThrottleChange{}); err != nil {
		t.Error(err)
	}
}

var update = flag.Bool("update", false, "write the tables of settings into the documentation")

// TestDocsHaveTheRows compares the tables of the documentation with the schema.
func TestDocsHaveTheRows(t *testing.T) {
	t.Parallel()
	for path, rows := range map[string][]Row{
		"../../docs/http-jobs.md": PolicyRows, "../../docs/limits.md": ThrottleRows,
	} {
		const start, end = "<!-- settings: written by the test of package schema; run it with -update -->\n",
			"<!-- end of settings -->\n"
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		head, rest, found := strings.Cut(string(text), start)
		_, tail, foundEnd := strings.Cut(rest, end)
		if !found || !foundEnd {
			t.Fatalf("%s has no markers for the table", path)
		}
		var b strings.Builder
		b.WriteString("| setting | flag | possible | meaning |\n|---|---|---|---|\n")
		for i := range rows {
			r := &rows[i]
			name := "`" + r.Name + "`"
			if r.Was != "" {
				name += " (was `" + r.Was + "`)"
			}
			fmt.Fprintf(&b, "| %s | `--%s` | %s | %s |\n", name, r.Flag(), r.Bounds(), r.Help)
		}
		want := head + start + b.String() + end + tail
		switch {
		case want == string(text):
		case !*update:
			t.Errorf("the table of %s is out of date: go test ./core/schema -update", path)
		default:
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
