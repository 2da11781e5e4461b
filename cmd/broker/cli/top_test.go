package cli

import (
	"context"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fakeBroker answers the requests of top from testdata/top_*.json and records the changes that it receives.
type fakeBroker struct {
	changes []string
	failed  bool
	shift   uint64 // added to the counters
}

func (f *fakeBroker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.failed {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"title": "Service Unavailable", "detail": "the store has failed"}`) // to a recorder
		return
	}
	if r.Method != http.MethodGet {
		body, _ := io.ReadAll(r.Body)
		f.changes = append(f.changes, r.Method+" "+r.URL.Path+" "+strings.TrimSpace(string(body)))
		_, _ = io.WriteString(w, "{}") // to a recorder
		return
	}
	name := strings.ReplaceAll(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/", "_")
	text, err := os.ReadFile(filepath.Join("testdata", "top_"+name+".json"))
	if err != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if f.shift > 0 {
		text = []byte(strings.ReplaceAll(string(text), `"submitted": 1`,
			`"submitted": 2`)) // ten times as large, or more
	}
	_, _ = w.Write(text)
}

// topFixture is a model whose requests fakeBroker answers.
type topFixture struct {
	*topModel
	t      *testing.T
	broker *fakeBroker
}

func newTop(t *testing.T) *topFixture {
	t.Helper()
	f := &topFixture{t: t, broker: &fakeBroker{}}
	server := httptest.NewServer(f.broker)
	t.Cleanup(server.Close)
	c, err := newClient(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	f.topModel = &topModel{
		ctx: context.Background(), client: c, every: time.Hour,
		now: func() time.Time { at = at.Add(time.Second); return at },
	}
	f.receive(f.fetch())
	f.deliver(tea.WindowSizeMsg{Width: 130, Height: 14})
	return f
}

// deliver passes a message to the model, and runs the resulting commands except ticks.
func (f *topFixture) deliver(msg tea.Msg) {
	f.t.Helper()
	_, cmd := f.Update(msg)
	if _, isData := msg.(topData); isData || cmd == nil {
		return // a tick follows data
	}
	f.deliver(cmd())
}

func (f *topFixture) press(keys ...string) {
	f.t.Helper()
	named := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "down": tea.KeyDown, "up": tea.KeyUp,
	}
	for _, key := range keys {
		code, special := named[key]
		press := tea.KeyPressMsg{Code: code}
		if !special {
			press = tea.KeyPressMsg{Code: rune(key[0]), Text: key}
		}
		f.deliver(press)
	}
}

// wantScreen compares the screen, without colours, with a golden file.
func (f *topFixture) wantScreen(name string) {
	f.t.Helper()
	got := ansi.Strip(f.View().Content)
	got = strings.ReplaceAll(got, f.client.base.Host, "broker:7420") + "\n"
	file := filepath.Join("testdata", "top_"+name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			f.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		f.t.Fatal(err)
	}
	if got != string(want) {
		f.t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
	}
}

func TestTopShowsScreens(t *testing.T) {
	t.Parallel()
	f := newTop(t)
	f.wantScreen("first")
	f.broker.shift = 1
	f.deliver(topTick(f.view))
	f.wantScreen("rates")
	f.press("down", "enter")
	f.wantScreen("jobs")
	f.press("enter")
	f.wantScreen("job")
	f.press("esc", "esc", "w")
	f.wantScreen("workers")
	f.press("esc")
	f.broker.failed = true
	f.deliver(topTick(f.view))
	f.wantScreen("failed")
	for _, line := range strings.Split(f.View().Content, "\n") {
		if ansi.StringWidth(line) > f.width {
			t.Errorf("line wider than the screen: %q", line)
		}
	}
}

func TestTopFitsAnyScreen(t *testing.T) {
	t.Parallel()
	f := newTop(t)
	for _, keys := range [][]string{nil, {"enter"}, {"enter"}, {"w"}} {
		f.press(keys...)
		for _, size := range []tea.WindowSizeMsg{
			{Width: 10, Height: 1}, {Width: 20, Height: 3}, {Width: 80, Height: 24}, {Width: 300, Height: 5},
		} {
			f.deliver(size)
			lines := strings.Split(f.View().Content, "\n")
			if len(lines) > max(size.Height, 2) {
				t.Errorf("%d lines on a screen of %d", len(lines), size.Height)
			}
			for _, line := range lines {
				if ansi.StringWidth(line) > size.Width {
					t.Errorf("%d columns on a screen of %d: %q", ansi.StringWidth(line), size.Width, line)
				}
			}
		}
	}
}

func TestTopActsOnTheSelection(t *testing.T) {
	t.Parallel()
	f := newTop(t)
	f.press("p", "y", "down", "p", "n", "p", "y", "enter", "r")
	want := []string{
		`PATCH /api/v1/queues/emails {"paused":true}`,
		`PATCH /api/v1/queues/reports/2030 {"paused":false}`,
		`POST /api/v1/job-actions {"action":"retry","ids":["0198c5a2-7d1e-7adc-8000-4f1e2d3c4b5a"]}`,
	}
	if strings.Join(f.broker.changes, "\n") != strings.Join(want, "\n") {
		t.Errorf("changes:\n%s\nwant:\n%s", strings.Join(f.broker.changes, "\n"), strings.Join(want, "\n"))
	}
	if !strings.Contains(f.View().Content, " retried") {
		t.Errorf("the result is not shown:\n%s", f.View().Content)
	}
}

// TestTopSelectionFollowsItsRow swaps the first two queues after one is selected, before the key that pauses it, and
// again before the answer to the question.
func TestTopSelectionFollowsItsRow(t *testing.T) {
	t.Parallel()
	f := newTop(t)
	f.press("down")
	chosen := f.data.queues[1].Name
	exchange := func() {
		d := f.fetch()
		if f.data.queues[1].Name == chosen {
			d.queues[0], d.queues[1] = d.queues[1], d.queues[0]
		}
		f.deliver(d)
	}
	exchange()
	f.press("p")
	if !strings.Contains(f.View().Content, "queue "+chosen+"?") {
		t.Errorf("it does not ask about %s:\n%s", chosen, f.View().Content)
	}
	exchange()
	f.press("y")
	if len(f.broker.changes) != 1 || !strings.Contains(f.broker.changes[0], " /api/v1/queues/"+chosen+" ") {
		t.Errorf("changes %q, chosen %s", f.broker.changes, chosen)
	}
}

func TestTopDropsAnswersOfAnEarlierScreen(t *testing.T) {
	t.Parallel()
	f := newTop(t)
	late := f.fetch()
	f.press("w")
	f.deliver(late)
	if len(f.data.queues) != 0 || len(f.data.workers) == 0 {
		t.Error("an answer for the queues reached the screen of workers")
	}
	if _, cmd := f.Update(topTick(late.view)); cmd != nil {
		t.Error("the ticks of an earlier screen go on")
	}
}
