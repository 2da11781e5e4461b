package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

var (
	topTitle    = lipgloss.NewStyle().Bold(true)
	topFaint    = lipgloss.NewStyle().Faint(true)
	topSelected = lipgloss.NewStyle().Reverse(true)
	topHeader   = lipgloss.NewStyle().Bold(true).Underline(true)
	topBad      = lipgloss.NewStyle().Foreground(lipgloss.Red)
)

// topMargin is the number of lines above and below a list: title, summary, header, keys.
const topMargin = 4

// pageRows is how many rows of a list fit on the screen.
func (m *topModel) pageRows() int { return max(1, m.height-topMargin) }

// View implements tea.Model.
func (m *topModel) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen = true
	v.WindowTitle = "broker top"
	return v
}

// text is the screen, m.height lines of at most m.width columns.
func (m *topModel) text() string {
	lines := []string{
		m.fit(topTitle.Render(m.title()) + topFaint.Render("  "+m.client.base.Host+"  "+m.data.at.Format("15:04:05"))),
		m.summary(),
	}
	if m.screen == screenJob {
		lines = append(lines, m.details()...)
	} else {
		lines = append(lines, m.list()...)
	}
	last := max(1, m.height-1)
	for len(lines) < last {
		lines = append(lines, "")
	}
	return strings.Join(append(lines[:last], m.keys()), "\n")
}

func (m *topModel) title() string {
	switch m.screen {
	case screenJobs:
		return topStates[m.state] + " jobs of " + oneLine(m.queue, 60)
	case screenJob:
		return "job " + oneLine(m.job, 60)
	case screenWorkers:
		return "workers"
	case screenQueues:
	}
	return "queues by " + strings.TrimPrefix(topSorts[m.sort], "-")
}

// summary is the broker in one line, or the error of the last request.
func (m *topModel) summary() string {
	if m.err != nil {
		text, _, _ := strings.Cut(m.err.Error(), "\n")
		return topBad.Render(m.fit(oneLine(text, 500)))
	}
	s := &m.data.summary
	if s.Jobs == nil {
		return ""
	}
	clients := 0
	for _, n := range s.Clients {
		clients += n
	}
	text := fmt.Sprintf("%s ready  %s leased  %s retrying  %s scheduled  %s dead   %s   %s   in %.0f/s  done %.0f/s",
		count(s.Jobs["ready"]), count(s.Jobs["leased"]), count(s.Jobs["retrying"]), count(s.Jobs["scheduled"]),
		count(s.Jobs["dead"]),
		plural(s.Queues, "queue"), plural(clients, "connection"), m.rates.allPerS.in, m.rates.allPerS.done)
	var warnings []string
	for _, w := range []struct {
		on   bool
		text string
	}{{s.Draining, "DRAINING"}, {s.DiskFull, "DISK FULL"}, {s.Stopped, "STORE FAILED"}} {
		if w.on {
			warnings = append(warnings, w.text)
		}
	}
	if len(warnings) > 0 {
		return topBad.Render(m.fit(strings.Join(warnings, "  ") + "  " + text))
	}
	return m.fit(text)
}

// keys is the last line: a question, the result of the last command, or the available keys.
func (m *topModel) keys() string {
	if m.question != nil {
		return topTitle.Render(m.fit(m.question.text))
	}
	if m.note != "" {
		return m.fit(oneLine(m.note, 500))
	}
	text := ""
	switch m.screen {
	case screenQueues:
		text = "enter jobs  p pause/resume  s order  w workers  q quit"
	case screenJobs:
		text = "enter details  tab state  r retry  esc back  q quit"
	case screenJob:
		text = "up/down scroll  r retry  esc back  q quit"
	case screenWorkers:
		text = "esc back  q quit"
	}
	return topFaint.Render(m.fit(text))
}

// list is the header and the rows that fit, including the selected row.
func (m *topModel) list() []string {
	t := m.table()
	lines := t.lines()
	header, rows := lines[0], lines[1:]
	out := []string{topHeader.Render(m.fit(header))}
	from := max(0, min(m.cursor-m.pageRows()/2, len(rows)-m.pageRows()))
	for i := from; i < min(len(rows), from+m.pageRows()); i++ {
		text := m.fit(rows[i])
		if i == m.cursor {
			text = topSelected.Render(text)
		}
		out = append(out, text)
	}
	if len(rows) == 0 && m.err == nil {
		out = append(out, topFaint.Render("none"))
	}
	return out
}

func (m *topModel) table() *table {
	switch m.screen {
	case screenJobs:
		return m.jobTable()
	case screenWorkers:
		return m.workerTable()
	case screenQueues, screenJob:
	}
	return m.queueTable()
}

func (m *topModel) queueTable() *table {
	t := &table{header: []string{
		"QUEUE", "-READY", "-LEASED", "-RETRYING", "-SCHEDULED", "-DEAD", "-IN/S", "-DONE/S", "-OLDEST", "-WORKERS",
		"STATE",
	}}
	for i := range m.data.queues {
		q := &m.data.queues[i]
		oldest := ""
		if q.Ready > 0 {
			oldest = span(seconds(q.LatencyS))
		}
		f := m.rates.perS[q.Name]
		t.add(oneLine(q.Name, 40), count(q.Ready), count(q.Leased), count(q.Retrying), count(q.Scheduled),
			count(q.Dead),
			rate(f.in), rate(f.done), oldest, count(q.Workers), mark(q.Paused, "paused"))
	}
	return t
}

func (m *topModel) jobTable() *table {
	t := &table{header: []string{"ID", "TYPE", "-PRIO", "-TRIES", "WHEN", "NOTE"}}
	for i := range m.data.jobs {
		j := &m.data.jobs[i]
		t.add(j.ID, oneLine(j.Type, 30), fmt.Sprint(j.Priority), fmt.Sprint(j.Attempts), whenOf(j, m.data.at),
			oneLine(noteOf(j), 80))
	}
	return t
}

func (m *topModel) workerTable() *table {
	t := &table{header: []string{"WORKER", "PROTOCOL", "ADDRESS", "STATE", "-HOLDS", "JOB", "QUEUES"}}
	for i := range m.data.workers {
		w := &m.data.workers[i]
		current := ""
		if len(w.Held) > 0 {
			current = oneLine(cmp.Or(w.Held[0].Type, w.Held[0].Queue), 30)
			if at := w.Held[0].LeasedAt; at != nil {
				current += " for " + span(max(m.data.at.Sub(*at), 0))
			}
		}
		t.add(oneLine(cmp.Or(w.Name, w.ID), 40), w.Protocol, oneLine(w.Address, 30), doing(w),
			strconv.Itoa(len(w.Held)), current,
			oneLine(strings.Join(w.Queues, " "), 60))
	}
	return t
}

// details is the selected job, from the line of the cursor on.
func (m *topModel) details() []string {
	var out []string
	for _, line := range m.detailLines()[m.cursor:] {
		out = append(out, m.fit(line))
	}
	return out
}

func (m *topModel) detailLines() []string {
	if m.data.job == nil {
		return nil
	}
	return strings.Split(strings.TrimRight(jobText(m.data.job), "\n"), "\n")
}

func rate(perS float64) string {
	if perS == 0 {
		return ""
	}
	return strconv.FormatFloat(perS, 'f', 1, 64)
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// fit cuts a line to the width of the screen.
func (m *topModel) fit(text string) string {
	if m.width <= 0 || lipgloss.Width(text) <= m.width {
		return text
	}
	return lipgloss.NewStyle().MaxWidth(m.width).Render(text)
}
