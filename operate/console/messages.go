package console

import (
	"cmp"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"time"

	"broker/operate/service"
)

// messageLook is the number of the latest failures that are read for their messages.
const messageLook = 300

// seenSpan is the time within which a group has begun that is marked as new.
const seenSpan = 24 * time.Hour

// varying matches the parts of a message that differ between failures of the same kind: ids, addresses, numbers.
var varying = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}` + // a UUID
	`|[\w.+-]+@[\w-]+(?:\.[\w-]+)+` + // an email address
	`|\[[0-9a-fA-F:]*:[0-9a-fA-F:]+\](?::\d+)?` + // IPv6
	`|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b` + // IPv4
	`|\b0x[0-9a-fA-F]+\b|\b[0-9A-Za-z_-]*\d[0-9A-Za-z_-]{7,}\b|\b[0-9A-Za-z_-]{7,}\d[0-9A-Za-z_-]*\b` + // ids
	`|\d+(?:[.,:]\d+)*`)

// samePart replaces a part that varies.
const samePart = "#"

// normalise replaces numbers, ids and addresses in a message, so that failures of one kind have the same message.
func normalise(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return varying.ReplaceAllString(line, samePart)
}

// messageCount is a message of a group with its number of failures; zero: unknown.
type messageCount struct {
	Text string
	N    int
}

// groupKey identifies a group of failures.
type groupKey struct{ group, typ string }

// setSeen adds to each group its most frequent messages, and the times at which its first and last jobs died.
func (r *request) setSeen(d *jobsData, filter service.JobFilter) error {
	state := d.States[0]
	list, err := r.service.Jobs(r.Context(), r.caller, filter,
		service.JobPage{Limit: messageLook, Sort: latestFailures[state], TimeLimit: searchLimit})
	if err != nil {
		return err
	}
	messages := messagesOf(list.Jobs)
	for i := range d.Groups {
		g := &d.Groups[i]
		g.Messages = messages[groupKey{g.Error, g.Type}]
		for k := range g.Messages {
			if list.Cursor != "" {
				g.Messages[k].N = 0 // the total is unknown
			}
		}
		if len(g.Messages) == 0 && g.Message != "" {
			g.Messages = []messageCount{{normalise(g.Message), 0}}
		}
	}
	if state != "dead" || !d.Exact { // the index has the times of dead jobs only
		return nil
	}
	return r.setDied(d, filter)
}

// messagesOf returns the most frequent messages of each group.
func messagesOf(jobs []service.Job) map[groupKey][]messageCount {
	groups := map[groupKey][]messageCount{}
	for i := range jobs {
		j := &jobs[i]
		if j.Failure == nil || j.Failure.Message == "" {
			continue
		}
		key, text := groupKey{j.FailureGroup, j.Type}, normalise(j.Failure.Message)
		at := slices.IndexFunc(groups[key], func(m messageCount) bool { return m.Text == text })
		if at < 0 {
			at = len(groups[key])
			groups[key] = append(groups[key], messageCount{Text: text})
		}
		groups[key][at].N++
	}
	for key, list := range groups {
		slices.SortStableFunc(list, func(a, b messageCount) int { return cmp.Compare(b.N, a.N) })
		groups[key] = list[:min(len(list), shownMessages)]
	}
	return groups
}

// shownMessages limits the messages that a group shows.
const shownMessages = 2

// setDied sets when the jobs of each group died: the first, the last, and the hours of the last day.
func (r *request) setDied(d *jobsData, filter service.JobFilter) error {
	now := r.console.options.Now()
	first, err := r.edge(filter, "died")
	if err != nil || first == nil {
		return err
	}
	for i := range d.Groups {
		g := &d.Groups[i]
		only := filter
		only.Types, only.FailureGroup = []string{g.Type}, service.FilterValue(g.Error)
		begin, end := only, only // only the hours of the first and last death are searched
		if !g.firstHour.IsZero() {
			begin.DiedFrom, begin.DiedTo = g.firstHour, g.firstHour.Add(time.Hour)
			end.DiedFrom, end.DiedTo = g.lastHour, g.lastHour.Add(time.Hour)
		}
		if g.First, err = r.edge(begin, "died"); err != nil {
			return err
		}
		if g.Last, err = r.edge(end, "-died"); err != nil {
			return err
		}
		g.Spark = deathLine(g.died)
		if g.New = g.First != nil && now.Sub(*g.First) < seenSpan && now.Sub(*first) >= seenSpan; !d.since.IsZero() {
			g.New = g.First != nil && !g.First.Before(d.since)
		}
	}
	if d.Newest { // errors of one hour are in the order of their groups so far
		slices.SortStableFunc(d.Groups, func(a, b jobGroup) int {
			return b.firstDeath().Compare(a.firstDeath())
		})
	}
	return nil
}

// firstDeath is when the first job of a group died, or the hour of it.
func (g *jobGroup) firstDeath() time.Time {
	if g.First != nil {
		return *g.First
	}
	return g.firstHour
}

// deathLine draws the deaths of each hour.
func deathLine(died []int) template.HTML {
	if slices.Max(append(died, 0)) == 0 {
		return ""
	}
	values := make([]float64, len(died))
	for i, n := range died {
		values[i] = float64(n)
	}
	return spark(values, "bad")
}

// edge returns the time at which the first or the last job of a filter died.
func (r *request) edge(filter service.JobFilter, sort string) (*time.Time, error) {
	list, err := r.service.Jobs(r.Context(), r.caller, filter, service.JobPage{Limit: 1, Sort: sort, Brief: true})
	if err != nil || len(list.Jobs) == 0 {
		return nil, err
	}
	return list.Jobs[0].DiedAt, nil
}

// groupSeen has the times at which the jobs of a group died.
type groupSeen struct {
	Messages    []messageCount
	First, Last *time.Time // of the jobs that are still dead
	New         bool       // the group began within a day, and other groups before that
	Spark       template.HTML
}
