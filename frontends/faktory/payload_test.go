package faktory

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/frontends"
)

// now is the time of all pushes in these tests.
var now = core.InstantOf(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))

// build makes a job from a work unit, like PUSH.
func build(t testing.TB, f *Frontend, text string) (*core.Job, error) {
	t.Helper()
	var u workUnit
	line := []byte(text)
	if err := parseWorkUnit(line, &u); err != nil {
		return nil, err
	}
	sub, err := f.newPushedJob(&u, &names{}, now)
	for i := range line {
		line[i] = 0xdb // the job must not share memory with the line
	}
	return sub.job, err
}

func mustBuild(t testing.TB, f *Frontend, text string) *core.Job {
	t.Helper()
	job, err := build(t, f, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return job
}

// unit is a valid job with additional members.
func unit(members string) string {
	text := `{"jid":"12345678","jobtype":"T","args":[]`
	if members != "" {
		text += "," + members
	}
	return text + "}"
}

func TestInvalidJobsGetTheErrorsOfTheReference(t *testing.T) {
	t.Parallel()
	queueRule := `queue names must match \A[a-zA-Z0-9._-]+\z`
	for _, c := range []struct{ text, want string }{
		// Not JSON, or not a job.
		{``, `invalid JSON: unexpected end of JSON input`},
		{`{`, `invalid JSON: unexpected end of JSON input`},
		{`{} {}`, `invalid JSON: invalid character '{' after top-level value`},
		{`[]`, `invalid JSON: json: cannot unmarshal array into Go value of type client.Job`},
		{`"x"`, `invalid JSON: json: cannot unmarshal string into Go value of type client.Job`},
		{`{"jid":1}`, `invalid JSON: json: cannot unmarshal number into Go struct field Job.jid of type string`},
		{`{"queue":[]}`, `invalid JSON: json: cannot unmarshal array into Go struct field Job.queue of type string`},
		{
			`{"jobtype":{}}`,
			`invalid JSON: json: cannot unmarshal object into Go struct field Job.jobtype of type string`,
		},
		{
			`{"args":{}}`,
			`invalid JSON: json: cannot unmarshal object into Go struct field Job.args of type []interface {}`,
		},
		{
			`{"args":"x"}`,
			`invalid JSON: json: cannot unmarshal string into Go struct field Job.args of type []interface {}`,
		},
		{`{"retry":1.5}`, `invalid JSON: json: cannot unmarshal number 1.5 into Go struct field Job.retry of type int`},
		{`{"retry":true}`, `invalid JSON: json: cannot unmarshal bool into Go struct field Job.retry of type int`},
		{
			`{"reserve_for":"9"}`,
			`invalid JSON: json: cannot unmarshal string into Go struct field Job.reserve_for of type int`,
		},
		{
			`{"backtrace":1e3}`,
			`invalid JSON: json: cannot unmarshal number 1e3 into Go struct field Job.backtrace of type int`,
		},
		{
			`{"custom":[]}`,
			`invalid JSON: json: cannot unmarshal array into Go struct field Job.custom of type map[string]interface {}`,
		},
		{
			`{"failure":[]}`,
			`invalid JSON: json: cannot unmarshal array into Go struct field Job.failure of type client.Failure`,
		},
		{
			`{"failure":{"retry_count":"1"}}`,
			`invalid JSON: json: cannot unmarshal string into Go struct field Failure.failure.retry_count of type int`,
		},
		{
			`{"created_at":1}`,
			`invalid JSON: json: cannot unmarshal number into Go struct field Job.created_at of type string`,
		},
		{
			`{"enqueued_at":1}`,
			`invalid JSON: json: cannot unmarshal number into Go struct field Job.enqueued_at of type string`,
		},
		{`{"at":1}`, `invalid JSON: json: cannot unmarshal number into Go struct field Job.at of type string`},
		{"{\"jid\":\"\xff2345678\"}", `invalid JSON: invalid UTF-8`},

		// In the order of the checks.
		{`null`, `jobs must have a reasonable jid parameter`},
		{`{}`, `jobs must have a reasonable jid parameter`},
		{`{"jid":"1234567"}`, `jobs must have a reasonable jid parameter`},
		{`{"jid":"` + strings.Repeat("j", 1025) + `"}`, `jobs must have a reasonable jid parameter`},
		{`{"jid":"12345678"}`, `jobs must have a jobtype parameter`},
		{`{"jid":"12345678","jobtype":""}`, `jobs must have a jobtype parameter`},
		{`{"jid":"12345678","jobtype":"T"}`, `jobs must have an args parameter`},
		{`{"jid":"12345678","jobtype":"T","args":null}`, `jobs must have an args parameter`},
		{`{"jid":"12345678","jobtype":"T","args":[],"args":null}`, `jobs must have an args parameter`},
		{
			`{"jid":"12345678","args":[],"jobtype":"` + strings.Repeat("T", 1025) + `"}`,
			`jobtype must not be longer than 1024 bytes`,
		},
		{unit(strings.Repeat(`"x":0,`, 1000) + `"x":0`), `jobs must not have more than 1000 unknown members`},
		{unit(`"reserve_for":86401,"at":"x","queue":"a b"`), `jobs cannot be reserved for more than one day`},
		{
			unit(`"at":"x","queue":"a b"`),
			`invalid timestamp for 'at': "x": parsing time "x" as "2006-01-02T15:04:05.999999999Z07:00": cannot parse "x" as "2006"`,
		},
		{
			unit(`"at":"` + strings.Repeat("9", 65) + `"`),
			`invalid timestamp for 'at': "` + strings.Repeat("9", 64) + `"…`,
		},
		{unit(`"queue":"a b"`), `cannot get "a b" queue: ` + queueRule},
		{unit(`"queue":"ü"`), `cannot get "ü" queue: ` + queueRule},
		{unit(`"queue":"a b","at":"2031-01-01T00:00:00Z"`), `cannot get "a b" queue: ` + queueRule},
		{
			unit(`"queue":"` + strings.Repeat("q", 513) + `"`),
			`cannot get "` + strings.Repeat("q", 32) + `" queue: queue names must not be longer than 512 bytes`,
		},

		// Members of custom.
		{unit(`"custom":{"unique_for":"soon"}`), `invalid value for 'unique_for': "soon": must be a number of seconds`},
		{unit(`"custom":{"unique_for":"10m"}`), `invalid value for 'unique_for': "10m": must be a number of seconds`},
		{unit(`"custom":{"unique_for":"1e3s"}`), `invalid value for 'unique_for': "1e3s": must be a number of seconds`},
		{unit(`"custom":{"unique_for":""}`), `invalid value for 'unique_for': "": must be a number of seconds`},
		{unit(`"custom":{"unique_for":" 10"}`), `invalid value for 'unique_for': " 10": must be a number of seconds`},
		{unit(`"custom":{"unique_for":"+10"}`), `invalid value for 'unique_for': "+10": must be a number of seconds`},
		{unit(`"custom":{"unique_for":"Inf"}`), `invalid value for 'unique_for': "Inf": must be a number of seconds`},
		{unit(`"custom":{"unique_for":"0x10"}`), `invalid value for 'unique_for': "0x10": must be a number of seconds`},
		{unit(`"custom":{"unique_for":true}`), `invalid value for 'unique_for': true: must be a number of seconds`},
		{unit(`"custom":{"expires_in":"1h"}`), `invalid value for 'expires_in': "1h": must be a number of seconds`},
		{
			unit(`"custom":{"unique_for":60,"unique_until":"end"}`),
			`invalid value for 'unique_until': "end": must be "success" or "start"`,
		},
		{unit(`"custom":{"expires_in":[]}`), `invalid value for 'expires_in': []: must be a number of seconds`},
		{unit(`"custom":{"expires_at":5}`), `invalid timestamp for 'expires_at': 5`},
		{
			unit(`"custom":{"expires_at":"5"}`),
			`invalid timestamp for 'expires_at': "5": parsing time "5" as "2006-01-02T15:04:05.999999999Z07:00": cannot parse "5" as "2006"`,
		},
		{unit(`"custom":{"bid":"b-nonsense"}`), `no such batch b-nonsense: No such batch is known here`},
		{unit(`"custom":{"bid":7}`), `no such batch 7: No such batch is known here`},
	} {
		if _, err := build(t, &Frontend{}, c.text); err == nil || err.Error() != c.want {
			t.Errorf("%.200s\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestJobFieldsReachTheCore(t *testing.T) {
	t.Parallel()
	second := core.Instant(time.Second / time.Microsecond)
	for _, c := range []struct {
		name, members string
		change        func(*core.Job)
	}{
		{"defaults", ``, func(*core.Job) {}},
		{
			"nulls",
			`"queue":null,"retry":null,"custom":null,"at":null,"reserve_for":null,"backtrace":null,"failure":null`,
			func(*core.Job) {},
		},
		{"names in any case", `"QUEUE":"q","ReTry":1`, func(j *core.Job) {
			j.Queue, j.MaxFails, j.Own = "q", 2, core.PolicyMaxFails
		}},
		{"names with escapes", `"q\u0075eue":"\u0071"`, func(j *core.Job) { j.Queue = "q" }},
		{"the last of two members wins", `"queue":"p","queue":"q"`, func(j *core.Job) { j.Queue = "q" }},
		{"reserve_for", `"reserve_for":90`, func(j *core.Job) {
			j.LeaseFor, j.Own = 90*time.Second, core.PolicyLeaseFor
		}},
		{"short reserve_for", `"reserve_for":59`, func(j *core.Job) {
			j.LeaseFor, j.Own = time.Minute, core.PolicyLeaseFor
		}},
		{"negative reserve_for", `"reserve_for":-1`, func(j *core.Job) {
			j.LeaseFor, j.Own = time.Minute, core.PolicyLeaseFor
		}},
		{"reserve_for that is too small for a duration", `"reserve_for":-9223372037`, func(j *core.Job) {
			j.LeaseFor, j.Own = time.Minute, core.PolicyLeaseFor
		}},
		{"smallest reserve_for", `"reserve_for":-9223372036854775808`, func(j *core.Job) {
			j.LeaseFor, j.Own = time.Minute, core.PolicyLeaseFor
		}},
		{"longest reserve_for", `"reserve_for":86400`, func(j *core.Job) {
			j.LeaseFor, j.Own = 24*time.Hour, core.PolicyLeaseFor
		}},
		{"retry 0", `"retry":0`, func(j *core.Job) {
			j.MaxFails, j.Exhausted, j.Own = 1, core.ExhaustedFinish, core.PolicyMaxFails|core.PolicyExhausted
		}},
		{"retry -1", `"retry":-1`, func(j *core.Job) {
			j.MaxFails, j.Own = 1, core.PolicyMaxFails|core.PolicyExhausted
		}},
		{"retry 3", `"retry":3`, func(j *core.Job) { j.MaxFails, j.Own = 4, core.PolicyMaxFails }},
		{"retry beyond 32 bits", `"retry":9000000000`, func(j *core.Job) {
			j.MaxFails, j.Own = 1<<32-1, core.PolicyMaxFails
		}},
		{"at in the future", `"at":"2030-01-01T01:00:10.5+01:00"`, func(j *core.Job) {
			j.ReadyAt = now + 10*second + second/2
		}},
		{"at in the past", `"at":"2029-01-01T00:00:00Z"`, func(*core.Job) {}},
		{"a failure from elsewhere", `"failure":{"retry_count":2,"remaining":3}`, func(j *core.Job) {
			j.PriorFails, j.Failure = 3, &core.Failure{}
		}},
		{
			"a failure from elsewhere with all members",
			`"failure":{"FAILED_AT":"2020-01-01T00:00:00Z","next_at":"soon","message":" boom ","errtype":"E\u0021","backtrace":["a",null,"\"b\""]}`,
			func(j *core.Job) {
				j.PriorFails = 1
				j.Failure = &core.Failure{
					Type: "E!", Message: "boom", Backtrace: []string{"a", `"b"`},
					FailedAt: core.InstantOf(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)),
				}
			},
		},
		{
			"a failure that is too long",
			`"failure":{"errtype":"` + strings.Repeat("E", 101) + `","message":"` + strings.Repeat("m", 1001) + `"}`,
			func(j *core.Job) {
				j.PriorFails, j.Failure = 1, &core.Failure{
					Type: strings.Repeat("E", 100), Message: strings.Repeat("m", 1000),
				}
			},
		},
		{
			"a failure with counts out of range",
			`"failure":{"retry_count":9223372036854775807,"remaining":9223372036854775807}`, func(j *core.Job) {
				j.PriorFails, j.Failure = 1<<31, &core.Failure{}
			},
		},
		{"a failure with negative counts", `"failure":{"retry_count":-7}`, func(j *core.Job) {
			j.PriorFails, j.Failure = 1, &core.Failure{}
		}},
		{"priority", `"custom":{"priority":-5}`, func(j *core.Job) { j.Priority = -5 }},
		{"priority beyond 32 bits", `"custom":{"priority":99999999999}`, func(j *core.Job) { j.Priority = 1<<31 - 1 }},
		{"priority that is not an integer", `"custom":{"priority":"high"}`, func(*core.Job) {}},
		{
			"trace",
			`"custom":{"tracestate":"a=1","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}`,
			func(j *core.Job) {
				j.Trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 a=1"
			},
		},
		{
			"invalid trace is carried and has no meaning", `"custom":{"traceparent":"00-00-00-01","tracestate":"a=1"}`,
			func(*core.Job) {},
		},
		{"trace that is not text", `"custom":{"traceparent":7,"tracestate":[]}`, func(*core.Job) {}},
		{"tags", `"custom":{"tags":["a:b","vip"]}`, func(j *core.Job) { j.Tags = []string{"a:b", "vip"} }},
		{
			"tags of another kind",
			`"custom":{"tags":["",7,{"a":1},"vip","` + strings.Repeat("x", core.MaxTagBytes+1) + `"]}`,
			func(j *core.Job) { j.Tags = []string{"vip"} },
		},
		{"tags that are not a list", `"custom":{"tags":"vip"}`, func(*core.Job) {}},
		{"priority outside of custom is ignored", `"priority":9`, func(*core.Job) {}},
		{"unique", `"custom":{"unique_for":60}`, func(j *core.Job) {
			j.Unique, j.UniqueKey, j.UniqueUntil = core.UniqueRefuse, uniqueKey("T", []byte("[]")), now+60*second
		}},
		{"unique until start", `"custom":{"unique_until":"start","unique_for":"1.5"}`, func(j *core.Job) {
			j.Unique, j.UniqueKey, j.UniqueUntil = core.UniqueRefuse, uniqueKey("T", []byte("[]")), now+second*3/2
			j.UniqueStart = true
		}},
		{"unique and scheduled", `"at":"2030-01-01T00:00:10Z","custom":{"unique_for":60}`, func(j *core.Job) {
			j.ReadyAt, j.Unique, j.UniqueKey = now+10*second, core.UniqueRefuse, uniqueKey("T", []byte("[]"))
			j.UniqueUntil = now + 70*second
		}},
		{"unique, in another spelling", `"custom":{"unique_for":1e3}`, func(j *core.Job) {
			j.Unique, j.UniqueKey, j.UniqueUntil = core.UniqueRefuse, uniqueKey("T", []byte("[]")), now+1000*second
		}},
		{"unique, in a third spelling", `"custom":{"unique_for":"120.0E-1"}`, func(j *core.Job) {
			j.Unique, j.UniqueKey, j.UniqueUntil = core.UniqueRefuse, uniqueKey("T", []byte("[]")), now+12*second
		}},
		{"unique for the longest span", `"custom":{"unique_for":1e999}`, func(j *core.Job) {
			j.Unique, j.UniqueKey, j.UniqueUntil = core.UniqueRefuse, uniqueKey("T", []byte("[]")), now.Add(longestSpan)
		}},
		{"unique for no time", `"custom":{"unique_for":0}`, func(*core.Job) {}},
		{"expires_at", `"custom":{"expires_at":"2030-01-01T00:01:00Z"}`, func(j *core.Job) {
			j.StartBefore = now + 60*second
		}},
		{"expired already", `"custom":{"expires_at":"1950-01-01T00:01:00Z"}`, func(j *core.Job) { j.StartBefore = 1 }},
		{"expires_in", `"custom":{"expires_in":30}`, func(j *core.Job) { j.StartBefore = now + 30*second }},
		{"expired long ago", `"custom":{"expires_in":-1e999}`, func(j *core.Job) { j.StartBefore = 1 }},
		{
			"expires_at before expires_in", `"custom":{"expires_at":"2030-01-01T00:01:00Z","expires_in":30}`,
			func(j *core.Job) {
				j.StartBefore = now + 60*second
			},
		},
		{"tracked", `"custom":{"track":1}`, func(j *core.Job) { j.RetainFor = 30 * time.Minute }},
		{"tracked, as a bool", `"custom":{"track":true}`, func(j *core.Job) { j.RetainFor = 30 * time.Minute }},
		{"not tracked", `"custom":{"track":0}`, func(*core.Job) {}},
		{"in a batch", `"custom":{"bid":"b-000000000001z"}`, func(j *core.Job) { j.Batch = 71 }},
	} {
		want := &core.Job{
			ID: "12345678", Queue: "default", Type: "T", Body: []byte("[]"), Format: core.Args, Origin: core.Faktory,
			LeaseFor: 30 * time.Minute, MaxFails: 26, Backoff: core.BackoffFaktory, Exhausted: core.ExhaustedBury,
			LeaseEnd: core.LeaseEndFail, DeadFor: 180 * 24 * time.Hour,
		}
		c.change(want)
		got := mustBuild(t, &Frontend{}, unit(c.members))
		got.Attributes = nil // see TestFetchedJobEqualsThePushedOne
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %+v\nwant %+v", c.name, got, want)
		}
	}
}

func TestLinksAreReadFromCustom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		custom string
		after  []string
		parent string
	}{
		{`{"after":"job-1"}`, []string{"job-1"}, ""},
		{`{"after":["job-1","job-2"],"parent":"job-3"}`, []string{"job-1", "job-2"}, "job-3"},
		{`{"after":[1],"parent":7}`, nil, ""}, // members of the client
	} {
		var u workUnit
		if err := parseWorkUnit([]byte(unit(`"custom":`+c.custom)), &u); err != nil {
			t.Fatal(err)
		}
		sub, err := (&Frontend{}).newPushedJob(&u, &names{}, now)
		if err != nil || !reflect.DeepEqual(sub.after, c.after) || sub.parent != c.parent {
			t.Errorf("%s: after %q, parent %q, %v", c.custom, sub.after, sub.parent, err)
		}
	}
}

func TestUniqueKeyIgnoresWhiteSpace(t *testing.T) {
	t.Parallel()
	key := uniqueKey("T", []byte(`[1,"a b"]`))
	if uniqueKey("T", []byte(`[ 1 , "a b" ]`)) != key {
		t.Error("spaces between tokens make another key")
	}
	for _, other := range []string{`[1,"ab"]`, `[1.0,"a b"]`, `[]`} {
		if uniqueKey("T", []byte(other)) == key {
			t.Errorf("%s has the same key", other)
		}
	}
	if uniqueKey("U", []byte(`[1,"a b"]`)) == key {
		t.Error("another type has the same key")
	}
}

func TestNamesAreRoutedAtSubmission(t *testing.T) {
	t.Parallel()
	route := func(queue, jobtype string) (string, string) {
		switch jobtype {
		case "Resize":
			return "resize-image", "resize-image"
		case "Mail":
			return queue, "SendMail"
		}
		return queue, jobtype
	}
	f := &Frontend{opts: Options{Options: frontends.Options{Namespace: "f.", Route: route}}}
	for _, c := range []struct{ jobtype, queue, typ string }{
		{"Resize", "resize-image", "resize-image"}, {"Mail", "f.q", "SendMail"}, {"Other", "f.q", "Other"},
	} {
		job := mustBuild(t, f, `{"jid":"12345678","queue":"q","args":[],"jobtype":"`+c.jobtype+`"}`)
		if job.Queue != c.queue || job.Type != c.typ {
			t.Errorf("%s: queue %s, type %s", c.jobtype, job.Queue, job.Type)
		}
	}
}

// fetched is a job as FETCH returns it.
func fetched(f *Frontend, job *core.Job) string {
	return string(f.appendJob(nil, job, jobState{enqueuedAt: now}))
}

func TestFetchedJobEqualsThePushedOne(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 500) + strings.Repeat("]", 500)
	for _, c := range []struct{ pushed, want string }{
		{
			unit(``),
			`{"retry":25,"jid":"12345678","queue":"default","jobtype":"T","enqueued_at":"2030-01-01T00:00:00Z","args":[]}`,
		},
		{
			`{"args":[12345678901234567890,1.0,-0.10e+5,1E400,"ü\u00fc\ud83d\ude42",{"b":1,"a":2,"b":3},` + deep +
				`],` +
				`"x":{"y":[1e99]},"jobtype":"Grüße \"T\"","jid":"1234\n5678","queue":"q.1-_A","retry":3,` +
				`"custom":{"z":12345678901234567890,"a":[]},"created_at":"any text","at":"2020-01-01T00:00:00+01:00",` +
				`"reserve_for":7,"backtrace":2,"enqueued_at":"gone","priority":9}`,
			`{"retry":3,"custom":{"z":12345678901234567890,"a":[]},"jid":"1234\n5678","queue":"q.1-_A",` +
				`"jobtype":"Grüße \"T\"","created_at":"any text","enqueued_at":"2030-01-01T00:00:00Z",` +
				`"at":"2020-01-01T00:00:00+01:00",` +
				`"args":[12345678901234567890,1.0,-0.10e+5,1E400,"ü\u00fc\ud83d\ude42",{"b":1,"a":2,"b":3},` + deep +
				`],` +
				`"reserve_for":7,"backtrace":2,"x":{"y":[1e99]},"priority":9}`,
		},
		{
			unit(`"retry":-1,"failure":{"retry_count":1,"remaining":2,"x":0},"unknown":null`),
			`{"retry":-1,"failure":{"retry_count":1,"remaining":2,"x":0},"jid":"12345678","queue":"default","jobtype":"T",` +
				`"enqueued_at":"2030-01-01T00:00:00Z","args":[],"unknown":null}`,
		},
		{
			unit(`"retry":25,"custom":{ },"reserve_for":0,"backtrace":0,"created_at":"","at":""`),
			`{"retry":25,"jid":"12345678","queue":"default","jobtype":"T","enqueued_at":"2030-01-01T00:00:00Z","args":[]}`,
		},
		{
			unit(`"un\u006bnown\n":1`),
			`{"retry":25,"jid":"12345678","queue":"default","jobtype":"T","enqueued_at":"2030-01-01T00:00:00Z","args":[],"unknown\n":1}`,
		},
	} {
		f := &Frontend{}
		if got := fetched(f, mustBuild(t, f, c.pushed)); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.pushed, got, c.want)
		}
	}
}

func TestRawBodiesBecomeArguments(t *testing.T) {
	t.Parallel()
	minted := &core.Job{Seq: 7, CreatedAt: now}
	head := `{"retry":0,"custom":{"broker":{"from":"gearman","encoding":"`
	tail := `"}},"jid":"` + minted.Identity() + `","queue":"f","jobtype":"f","created_at":"2030-01-01T00:00:00Z",` +
		`"enqueued_at":"2030-01-01T00:00:00Z","args":`
	for _, c := range []struct{ name, body, encoding, args string }{
		{"an array", "[1, {\"a\":\n2.50}]", "json", "[1, {\"a\":\n2.50}]"},
		{"an array with space around", " [1] ", "json", " [1] "},
		{"text", "hello \"you\"", "text", `["hello \"you\""]`},
		{"an object is text", `{"a":1}`, "text", `["{\"a\":1}"]`},
		{"nearly an array", `[1,]`, "text", `["[1,]"]`},
		{"nothing", "", "text", `[""]`},
		{"bytes", "\xff\x00", "base64", `["/wA="]`},
		{"bytes in an array", "[\"\xff\"]", "base64", `["WyL/Il0="]`},
	} {
		job := &core.Job{Seq: 7, CreatedAt: now, Queue: "g.f", Type: "g.f", Body: []byte(c.body), Origin: core.Gearman}
		got := fetched(&Frontend{opts: Options{Options: frontends.Options{Namespace: "g."}}}, job)
		if want := head + c.encoding + tail + c.args + "}"; got != want || !json.Valid([]byte(got)) {
			t.Errorf("%s\n got %s\nwant %s", c.name, got, want)
		}
	}
}

func TestRetryOfJobsFromOtherProtocols(t *testing.T) {
	t.Parallel()
	job := &core.Job{
		ID: "6ba7b810-9dad-41d1-80b4-00c04fd430c4", Queue: "ping", Type: "ping", Body: []byte("[]"), Origin: core.Workq,
		MaxFails: 3, LeaseFor: 90 * time.Second, ReadyAt: now, Attributes: []byte("not ours"),
	}
	want := `{"retry":2,"custom":{"broker":{"from":"workq","encoding":"json"}},"jid":"6ba7b810-9dad-41d1-80b4-00c04fd430c4",` +
		`"queue":"ping","jobtype":"ping","enqueued_at":"2030-01-01T00:00:00Z","at":"2030-01-01T00:00:00Z","args":[],"reserve_for":90}`
	if got := fetched(&Frontend{}, job); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	job.MaxFails, job.Exhausted = 1, core.ExhaustedBury
	if got := fetched(&Frontend{}, job); !strings.HasPrefix(got, `{"retry":-1,`) {
		t.Errorf("got %s", got)
	}
}

func TestTraceReachesTheWorkerInCustom(t *testing.T) {
	t.Parallel()
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, c := range []struct{ name, trace, want string }{
		{"none", "", ""},
		{"traceparent", parent, `"custom":{"traceparent":"` + parent + `"},`},
		{"both", parent + ` a="1"`, `"custom":{"traceparent":"` + parent + `","tracestate":"a=\"1\""},`},
	} {
		job := &core.Job{
			ID: "job-00000001", Queue: "q", Type: "t", Body: []byte("[]"), Format: core.Args, Origin: core.HTTP,
			Trace: c.trace,
		}
		want := `{"retry":0,` + c.want +
			`"jid":"job-00000001","queue":"q","jobtype":"t","enqueued_at":"2030-01-01T00:00:00Z","args":[]}`
		if got := fetched(&Frontend{}, job); got != want {
			t.Errorf("%s\n got %s\nwant %s", c.name, got, want)
		}
	}
	pushed := fetched(&Frontend{}, mustBuild(t, &Frontend{}, unit(`"custom":{"b":1,"traceparent":"`+parent+`"}`)))
	if strings.Count(pushed, parent) != 1 {
		t.Errorf("a job of a Faktory client is fetched as %s", pushed)
	}
}

func TestCallbackNamesItsBatch(t *testing.T) {
	t.Parallel()
	job := mustBuild(t, &Frontend{}, unit(`"custom":{"a":1}`))
	job.CallbackFor = 71
	if got := fetched(&Frontend{}, job); !strings.Contains(got, `"custom":{"a":1,"_bid":"b-000000000001z"}`) {
		t.Errorf("got %s", got)
	}
	job = mustBuild(t, &Frontend{}, unit(``))
	job.CallbackFor = 71
	if got := fetched(&Frontend{}, job); !strings.Contains(got, `"custom":{"_bid":"b-000000000001z"}`) {
		t.Errorf("got %s", got)
	}
}
