package schema

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
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
		words := BackoffOf(value)
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
		"max_fails": []byte("5"), "max_attempts": []byte("null"), "lease_for_s": []byte("90"), "expires_in_s": []byte("null"),
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
