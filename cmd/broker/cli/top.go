package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"broker/operate/service"
)

func topCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "watch queues, jobs and workers in a full-screen view",
		Long: "Watch queues, jobs and workers in a full-screen view.\n\n" +
			"  up, down   select             enter   the jobs of a queue, the details of a job\n" +
			"  p          pause or resume    r       retry a job\n" +
			"  s          change the order   tab     jobs in another state\n" +
			"  w          workers            esc     back; q quits",
		Args: noArgs,
	}
	conn := addConnection(cmd)
	every := cmd.Flags().Duration("interval", time.Second, "time between updates, at least 100ms")
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, _ []string) error {
		if in, isFile := cmd.InOrStdin().(*os.File); !isFile || !isatty.IsTerminal(in.Fd()) {
			return UsageError(
				errors.New("top needs a terminal; 'broker queues' and 'broker jobs' print the same numbers"),
			)
		}
		m := &topModel{ctx: cmd.Context(), client: c, every: max(*every, minTopInterval), now: time.Now}
		if m.receive(m.fetch()); m.err != nil {
			return m.err
		}
		_, err := tea.NewProgram(m, tea.WithContext(m.ctx), tea.WithInput(cmd.InOrStdin()),
			tea.WithOutput(cmd.OutOrStdout())).Run()
		return Failed(err)
	})
	return cmd
}

const minTopInterval = 100 * time.Millisecond

// screen is the current screen of top.
type screen int

const (
	screenQueues screen = iota
	screenJobs
	screenJob
	screenWorkers
)

// The orders of queues and the states of jobs between which keys switch.
var (
	topSorts  = []string{"-ready", "-leased", "-dead", "-retrying", "-latency", "name"}
	topStates = []string{"ready", "leased", "retrying", "scheduled", "blocked", "dead"}
)

// topModel is the state of top. Its methods run on bubbletea's loop; only fetch and the functions that commands return
// run on other goroutines, with a copy.
type topModel struct {
	ctx           context.Context // of the command, for the requests that the loop starts
	client        *client
	every         time.Duration
	now           func() time.Time
	width, height int
	screen        screen
	view          int    // increases when the screen changes; answers for an earlier view are dropped
	queue, job    string // of screenJobs and screenJob
	state, sort   int    // of topStates, topSorts
	cursor        int
	selected      string // name or id of the row at the cursor, which the selection follows when rows move
	question      *topQuestion
	data          topData
	rates         rates
	err           error  // of the last request; data is then that of the request before
	note          string // result of the last command
}

// topTick triggers the next update of a view.
type topTick int

// topQuestion is a change that waits for the key y.
type topQuestion struct {
	text string
	yes  tea.Cmd
}

// topNote is the result of a command, in words.
type topNote string

// Init implements tea.Model.
func (m *topModel) Init() tea.Cmd { return m.tick() }

func (m *topModel) tick() tea.Cmd {
	view := m.view
	return tea.Tick(m.every, func(time.Time) tea.Msg { return topTick(view) })
}

// Update implements tea.Model.
func (m *topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case topTick:
		if int(msg) == m.view {
			return m, m.refresh()
		}
	case topData:
		if msg.view == m.view {
			m.receive(msg)
			return m, m.tick()
		}
	case topNote:
		m.note = string(msg)
		m.view++ // replaces the planned update by an immediate one
		return m, m.refresh()
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	}
	return m, nil
}

// refresh fetches the data of the view.
func (m *topModel) refresh() tea.Cmd {
	current := *m
	return func() tea.Msg { return current.fetch() }
}

// receive handles the result of fetch.
func (m *topModel) receive(d topData) {
	if m.err = d.err; m.err != nil {
		return
	}
	m.data = d
	m.rates.update(&d)
	m.followSelection()
}

// followSelection moves the cursor to the new place of the selected row. If the row no longer exists, it selects the
// row that took its place.
func (m *topModel) followSelection() {
	for i := range m.rows() {
		if m.selected != "" && m.rowKey(i) == m.selected {
			m.cursor = i
			return
		}
	}
	m.move(0)
}

// show changes to another screen.
func (m *topModel) show(s screen) tea.Cmd {
	m.screen, m.cursor, m.selected, m.note, m.err = s, 0, "", "", nil
	m.view++
	m.data = topData{at: m.data.at}
	return m.refresh()
}

func (m *topModel) key(key string) tea.Cmd {
	if q := m.question; q != nil {
		m.question = nil
		if key == "y" || key == "enter" {
			return q.yes
		}
		if key != "q" && key != "ctrl+c" {
			return nil
		}
	}
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "esc", "backspace", "left":
		return m.back()
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-m.pageRows())
	case "pgdown", "space":
		m.move(m.pageRows())
	case "w":
		return m.show(screenWorkers)
	case "s":
		m.sort = (m.sort + 1) % len(topSorts)
		return m.show(screenQueues)
	case "tab":
		if m.screen == screenJobs {
			m.state = (m.state + 1) % len(topStates)
			return m.show(screenJobs)
		}
	case "enter", "right":
		return m.open()
	case "p":
		return m.togglePause()
	case "r":
		return m.retry()
	}
	return nil
}

func (m *topModel) move(by int) {
	m.cursor = max(0, min(m.cursor+by, m.rows()-1))
	m.selected = m.rowKey(m.cursor)
}

// back returns to the screen that this one was opened from.
func (m *topModel) back() tea.Cmd {
	switch m.screen {
	case screenJob:
		return m.show(screenJobs)
	case screenJobs, screenWorkers:
		return m.show(screenQueues)
	case screenQueues:
	}
	return nil
}

// open shows more of the selected row.
func (m *topModel) open() tea.Cmd {
	switch {
	case m.screen == screenQueues && m.cursor < len(m.data.queues):
		m.queue = m.data.queues[m.cursor].Name
		return m.show(screenJobs)
	case m.screen == screenJobs && m.cursor < len(m.data.jobs):
		m.job = m.data.jobs[m.cursor].ID
		return m.show(screenJob)
	}
	return nil
}

// togglePause asks whether to pause or resume the selected queue.
func (m *topModel) togglePause() tea.Cmd {
	if m.screen != screenQueues || m.cursor >= len(m.data.queues) {
		return nil
	}
	q := m.data.queues[m.cursor]
	verb := "pause"
	if q.Paused {
		verb = "resume"
	}
	m.question = &topQuestion{
		fmt.Sprintf("%s queue %s? y: yes, any other key: no", verb, oneLine(q.Name, 60)), m.sendPause(q),
	}
	return nil
}

func (m *topModel) sendPause(q service.Queue) tea.Cmd {
	word := "paused"
	if q.Paused {
		word = "resumed"
	}
	return m.send(q.Name+" "+word, http.MethodPatch, "queues/"+url.PathEscape(q.Name),
		map[string]any{"paused": !q.Paused})
}

// retry makes the selected job ready.
func (m *topModel) retry() tea.Cmd {
	id := ""
	switch {
	case m.screen == screenJobs && m.cursor < len(m.data.jobs):
		id = m.data.jobs[m.cursor].ID
	case m.screen == screenJob:
		id = m.job
	default:
		return nil
	}
	body := map[string]any{"action": "retry", "ids": []string{id}}
	return m.send("job "+id+" retried", http.MethodPost, "job-actions", body)
}

// send makes a change. When the result arrives, Update fetches the view again.
func (m *topModel) send(done, method, path string, body map[string]any) tea.Cmd {
	current := *m
	return func() tea.Msg {
		ctx, cancel := within(current.ctx, topTimeout)
		defer cancel()
		var answer json.RawMessage
		if _, err := current.client.call(ctx, method, path, nil, body, &answer); err != nil {
			return topNote(err.Error())
		}
		return topNote(done)
	}
}
