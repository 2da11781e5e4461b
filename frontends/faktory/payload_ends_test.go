package faktory

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"broker/core"
)

func TestFailureOfFetchedJob(t *testing.T) {
	t.Parallel()
	next := now.Add(time.Minute)
	for _, c := range []struct {
		name, members string
		failure       core.Failure
		want          string
	}{
		{
			"first", `"retry":3`,
			core.Failure{
				Type: "E", Message: "m", Backtrace: []string{"a", "b\""}, FailedAt: now, NextAt: next, Count: 1,
			},
			`{"failed_at":"2030-01-01T00:00:00Z","next_at":"2030-01-01T00:01:00Z","message":"m","errtype":"E","backtrace":["a","b\""],"retry_count":0,"remaining":3}`,
		},
		{
			"later", `"retry":3`,
			core.Failure{Type: "E", Message: "m", FailedAt: now, NextAt: next, Count: 3},
			`{"failed_at":"2030-01-01T00:00:00Z","next_at":"2030-01-01T00:01:00Z","message":"m","errtype":"E","retry_count":2,"remaining":1}`,
		},
		{
			"beyond", `"retry":3`,
			core.Failure{Type: "E", Message: "m", FailedAt: now, Count: 7},
			`{"failed_at":"2030-01-01T00:00:00Z","message":"m","errtype":"E","retry_count":6,"remaining":0}`,
		},
		{
			"no retries", `"retry":-1`,
			core.Failure{FailedAt: now, Count: 1},
			`{"failed_at":"2030-01-01T00:00:00Z","message":"unknown","errtype":"unknown","retry_count":0,"remaining":-1}`,
		},
		{
			"counted on from elsewhere", `"failure":{"failed_at":"then","retry_count":3,"remaining":5}`,
			core.Failure{Type: "E", Message: "m", FailedAt: now, Count: 5},
			`{"failed_at":"then","message":"m","errtype":"E","retry_count":4,"remaining":4}`,
		},
		{
			"bytes of another protocol", ``,
			core.Failure{FailedAt: now, Count: 1, Exception: true, Data: []byte("oops\xff")},
			`{"failed_at":"2030-01-01T00:00:00Z","message":"oops` + "\ufffd" +
				`","errtype":"unknown","retry_count":0,"remaining":25}`,
		},
	} {
		f := &Frontend{}
		got := string(f.appendJob(nil, mustBuild(t, f, unit(c.members)), jobState{failure: &c.failure}))
		if !strings.Contains(got, `"failure":`+c.want+`,`) {
			t.Errorf("%s\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestPushBulkIsParsedAsAWhole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		` [{"jid":"a"}, null ,{"jid":"b","x":1},{}] `: {"a", "", "b", ""},
		`[]`: nil, `null`: nil, ` [ ] `: nil,
	} {
		for _, keep := range []bool{false, true} {
			var u workUnit
			var got []string
			line := []byte(text)
			r, err := newWorkUnits(line, &u)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if keep {
				r.keep()
				clear(line)
			}
			for r.next(&u) {
				got = append(got, string(u.jid))
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %q, want %q", text, got, want)
			}
		}
	}
	for text, want := range map[string]string{
		`[{"jid":"a"},{"jid":1}]`: `invalid JSON: json: cannot unmarshal number into Go struct field Job.jid of type string`,
		`[{"jid":"a"}`:            `invalid JSON: unexpected end of JSON input`,
		`[{"jid":"a"}] x`:         `invalid JSON: invalid character 'x' after top-level value`,
		`[1]`:                     `invalid JSON: json: cannot unmarshal number into Go value of type client.Job`,
		`{}`:                      `invalid JSON: json: cannot unmarshal object into Go value of type []client.Job`,
		"[\"\xff\"]":              `invalid JSON: invalid UTF-8`,
	} {
		if _, err := newWorkUnits([]byte(text), &workUnit{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAckAndFailAreParsed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		arg, jid, result string
		ok               bool
	}{
		{`{"jid":"j"}`, "j", "", true},
		{` {"x":"y","jid":"j"} `, "j", "", true},
		{`{"jid":null}`, "", "", true},
		{`{"jid":"j","result":"t\u00e9xt"}`, "j", "téxt", true},
		{`{"jid":"j","result":{"a":[1.50]}}`, "j", `{"a":[1.50]}`, true},
		{`{"jid":"j","result":12345678901234567890}`, "j", "12345678901234567890", true},
		{`{"jid":1}`, "", "", false},
		{`{"jid":"j","x":1}`, "", "", false},
		{`{}`, "", "", false},
		{`null`, "", "", false},
		{`{"jid":"j"} x`, "", "", false},
		{``, "", "", false},
		{"{\"jid\":\"\xff\"}", "", "", false},
	} {
		jid, result, ok := parseAck([]byte(c.arg))
		if ok != c.ok || ok && (jid != c.jid || string(result) != c.result) {
			t.Errorf("%s: %q %q %v", c.arg, jid, result, ok)
		}
	}
	long := strings.Repeat("é", 600)
	lines := `"` + strings.Repeat("l", 20_000) + `"` + strings.Repeat(`,"l"`, 60)
	jid, failure, err := parseFail([]byte(
		`{"jid":"j","errtype":"  E` + long + ` ","message":"` + long + `","backtrace":[` + lines + `]}`))
	if err != nil || jid != "j" || len(failure.Backtrace) != 50 || len(failure.Type) > 100 ||
		len(failure.Message) != 1000 ||
		!strings.HasPrefix(failure.Type, "Eé") || len(failure.Backtrace[0]) != maxTraceLine {
		t.Errorf("%q %+v %v", jid, failure, err)
	}
	if _, failure, err = parseFail([]byte(`{"jid":"j","errtype":" ","backtrace":null}`)); err != nil ||
		failure.Type != "unknown" || failure.Message != "unknown" || len(failure.Backtrace) != 0 {
		t.Errorf("%+v %v", failure, err)
	}
}
