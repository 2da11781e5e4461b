package httpapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"broker/core"
)

// listed finds the names that the page for users gives between two of its words.
func listed(t *testing.T, from, to string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "http.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, began := strings.Cut(string(text), from)
	part, _, ended := strings.Cut(part, to)
	if !began || !ended {
		t.Fatalf("the page says nothing between %q and %q", from, to)
	}
	var names []string
	for _, match := range regexp.MustCompile("`([a-z0-9_]+)`").FindAllStringSubmatch(part, -1) {
		names = append(names, match[1])
	}
	return names
}

// members are the names that rows have in JSON.
func members(rows ...any) []string {
	var names []string
	for _, row := range rows {
		for f := range reflect.TypeOf(row).Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// Tools are written after the page: it names every member, and none that there is not.
func TestMembersAreThoseOfThePageForUsers(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct{ told, has []string }{
		"a queue":  {listed(t, "A queue has the members", "Names are escaped"), members(queueRow{}, maxRow{}, throttleRow{})},
		"a job":    {listed(t, "A job has the members", "## Workers"), append(members(jobRow{}, jobDetail{}), "custom")},
		"a worker": {listed(t, "A worker has the members", "Its jobs are"), members(workerRow{})},
		"a day":    {[]string{"date", "processed", "failed"}, members(dayRow{})},
		"an entry": {[]string{"schedule", "type", "queue", "next_at", "last_at"}, members(cronRow{})},
	} {
		for _, name := range test.has {
			if !slices.Contains(test.told, name) {
				t.Errorf("%s has the member %s, which the page does not name", what, name)
			}
		}
		for _, name := range test.told {
			if !slices.Contains(test.has, name) {
				t.Errorf("the page says that %s has the member %s", what, name)
			}
		}
	}
}

// wantJSON compares a value as clients see it.
func wantJSON(t *testing.T, value any, want string) {
	t.Helper()
	got, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// at is an instant so many seconds after the first of 2030.
func at(seconds int) core.Instant {
	return core.InstantOf(time.Date(2030, 1, 1, 0, 0, seconds, 0, time.UTC))
}

func TestEveryMemberOfAQueueTellsItsOwnNumber(t *testing.T) {
	t.Parallel()
	wantJSON(t, rowOfQueue(&core.QueueInfo{
		Name: "q", High: 1, Normal: 2, Low: 3, Scheduled: 4, Leased: 5, Retrying: 6, Blocked: 7, Done: 8, Dead: 9, Workers: 10,
		Paused: true, NextEnqueuedAt: at(0), Limits: core.Limits{
			MaxHigh: 11, MaxNormal: 12, MaxLow: 13,
			Throttle: core.Throttle{Leased: 14, LeasedPerWorker: 15, SlotFor: 16 * time.Second},
		},
	}, at(17)), `{"name":"q","ready":6,"high":1,"normal":2,"low":3,"scheduled":4,"leased":5,"retrying":6,"blocked":7,`+
		`"done":8,"dead":9,"workers":10,"paused":true,"latency":17,"max":{"high":11,"normal":12,"low":13},`+
		`"throttle":{"concurrency":14,"worker":15,"timeout":16}}`)
}

func TestEveryMemberOfAJobTellsItsOwnValue(t *testing.T) {
	t.Parallel()
	info := &core.JobInfo{
		Seq: 1, Queue: "q", State: core.Leased, Priority: 2, Origin: core.Faktory, CreatedAt: at(0), ReadyAt: at(1),
		ChangedAt: at(2), ExpiresAt: at(3), LeasedAt: at(5), LeaseUntil: at(6), Worker: "w", Attempts: 4, Fails: 5,
		Broken: true, Ephemeral: true, Watchers: 6,
		Progress: core.Progress{Num: 1, Den: 2, Text: "half", UpdatedAt: at(7)},
		Failure:  &core.Failure{Type: "E", Message: "m", Backtrace: []string{"line"}, FailedAt: at(8), NextAt: at(9), Count: 7},
	}
	job := &core.Job{
		ID: "jid", Type: "T", Body: []byte("body"), LeaseFor: 8 * time.Second, MaxAttempts: 9, MaxFails: 10, Parent: 11,
		After: []uint64{12, 13}, StartBefore: at(4),
	}
	wantJSON(t, rowOfJob(info, job), `{"id":"jid","alias":"`+core.Alias(1)+`","seq":1,"queue":"q","type":"T",`+
		`"origin":"faktory","state":"leased","priority":2,"created_at":"2030-01-01T00:00:00Z",`+
		`"ready_at":"2030-01-01T00:00:01Z","changed_at":"2030-01-01T00:00:02Z","expires_at":"2030-01-01T00:00:03Z",`+
		`"start_before":"2030-01-01T00:00:04Z","leased_at":"2030-01-01T00:00:05Z","lease_until":"2030-01-01T00:00:06Z",`+
		`"lease_for":8,"worker":"w","attempts":4,"max_attempts":9,"fails":5,"max_fails":10,"parent":11,"after":[12,13],`+
		`"broken":true,"ephemeral":true,"watchers":6,`+
		`"progress":{"numerator":1,"denominator":2,"text":"half","updated_at":"2030-01-01T00:00:07Z"},`+
		`"failure":{"type":"E","message":"m","failed_at":"2030-01-01T00:00:08Z","next_at":"2030-01-01T00:00:09Z","count":7},`+
		`"body_bytes":4}`)
	for protocol, name := range map[core.Protocol]string{core.Workq: "workq", core.Gearman: "gearman", core.Internal: "internal"} {
		if got := rowOfJob(&core.JobInfo{Origin: protocol}, nil).Origin; got != name {
			t.Errorf("origin %q, not %q", got, name)
		}
	}
}

func TestEveryMemberOfWorkersAndEntriesTellsItsOwnValue(t *testing.T) {
	t.Parallel()
	c := New(Options{Log: zerolog.Nop()})
	c.Ready(Backend{
		Broker: &idleBroker{},
		Workers: func() []Worker {
			return []Worker{{
				WID: "w", Hostname: "h", Username: "u", State: "running", PID: 1, Labels: []string{"l"}, Version: 2, RSSKB: 3,
				Connections: 4, RemoteAddr: "127.0.0.1:5", StartedAt: at(6), BeatAt: at(7),
			}}
		},
		Cron: func() []CronEntry {
			return []CronEntry{{Schedule: "* * * * *", Type: "T", Queue: "q", Next: at(8), Last: at(9)}}
		},
	})
	for path, want := range map[string]string{
		"/api/workers": `{"workers":[{"wid":"w","state":"running","hostname":"h","username":"u","pid":1,"labels":["l"],"v":2,` +
			`"rss_kb":3,"connections":4,"remote_addr":"127.0.0.1:5","started_at":"2030-01-01T00:00:06Z",` +
			`"beat_at":"2030-01-01T00:00:07Z"}]}`,
		"/api/cron": `{"entries":[{"schedule":"* * * * *","type":"T","queue":"q","next_at":"2030-01-01T00:00:08Z",` +
			`"last_at":"2030-01-01T00:00:09Z"}]}`,
	} {
		w := httptest.NewRecorder()
		c.HTTP().Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, http.NoBody))
		if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != want {
			t.Errorf("%s: %d\n%s\nwant\n%s", path, w.Code, got, want)
		}
	}
}

// idleBroker is a toy that clients may leave.
type idleBroker struct{ toyBroker }

// Close implements core.Broker.
func (*idleBroker) Close(core.ClientID) {}

// Now implements core.Broker.
func (*idleBroker) Now() core.Instant { return at(0) }
