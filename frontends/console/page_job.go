package console

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"broker/frontends/service"
)

type jobData struct {
	Job               service.Job
	Why, Body, Result string
	Actions           []choice
	Copies            []copyText
	Graph             template.HTML
}

// copyText is something to take to a terminal.
type copyText struct{ Label, Text string }

func jobPage(r *request) (*view, error) {
	j, err := r.service.Job(r.Context(), r.caller, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	d := jobData{
		Job: j, Why: whyItWaits(&j), Body: bodyText(&j), Result: resultText(j.Outcome), Copies: copies(&j), Actions: jobActions(j.State),
		Graph: linkGraph(&j),
	}
	return &view{page: "job", title: j.Type + " " + j.ID, nav: "jobs", data: d}, nil
}

// jobActions are the buttons for a job in a state.
func jobActions(state string) []choice {
	retry := choice{Value: string(service.ActionRetry), Label: "Run now"}
	kill := choice{Value: string(service.ActionKill), Label: "Kill"}
	remove := choice{Value: string(service.ActionDelete), Label: "Delete", Dangerous: true}
	cancel := choice{Value: string(service.ActionCancel), Label: "Cancel", Dangerous: true}
	switch state {
	case "scheduled", "blocked", "retrying":
		return []choice{retry, kill, cancel}
	case "ready", "leased":
		return []choice{kill, cancel}
	case "dead":
		retry.Label = "Run again"
		return []choice{retry, remove}
	case "done":
		return []choice{remove}
	}
	return nil
}

// changeJob serves the forms of a job's page.
func changeJob(r *request) (*view, error) {
	id := r.PathValue("id")
	at := "jobs/" + url.PathEscape(id)
	switch do := r.PostFormValue("do"); do {
	case string(service.ActionDelete), string(service.ActionCancel):
		if err := r.service.Act(r.Context(), r.caller, id, service.Action{Action: service.JobAction(do)}, nil); err != nil {
			return nil, err
		}
		return r.back("jobs", "The job is removed.")
	default:
		if err := r.service.Act(r.Context(), r.caller, id, service.Action{Action: service.JobAction(do)}, nil); err != nil {
			return nil, err
		}
		return r.back(at, map[string]string{"retry": "The job is ready.", "kill": "The job is in the dead set."}[do])
	}
}

// bodyText is a body for people: indented JSON, text, or a hex dump.
func bodyText(j *service.Job) string {
	switch {
	case len(j.Args) > 0:
		return pretty(j.Args)
	case j.Body != nil:
		if json.Valid([]byte(*j.Body)) {
			return pretty(json.RawMessage(*j.Body))
		}
		return readable([]byte(*j.Body))
	}
	return readable(j.BodyBase64)
}

func resultText(o *service.Outcome) string {
	switch {
	case o == nil:
		return ""
	case o.Result != nil && json.Valid([]byte(*o.Result)):
		return pretty(json.RawMessage(*o.Result))
	case o.Result != nil:
		return readable([]byte(*o.Result))
	}
	return readable(o.ResultBase64)
}

// readable shows text as it is and anything else as a hex dump.
func readable(b []byte) string {
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' }
	if utf8.Valid(b) && strings.IndexFunc(string(b), control) < 0 {
		return string(b)
	}
	return hex.Dump(b)
}

// copies are commands that submit the same job again.
func copies(j *service.Job) []copyText {
	if j.Truncated {
		return nil
	}
	body, raw := map[string]any{"queue": j.Queue, "type": j.Type}, ""
	switch {
	case len(j.Args) > 0:
		body["args"], raw = j.Args, string(j.Args)
	case j.Body != nil:
		body["body"], raw = *j.Body, *j.Body
	default:
		text := base64.StdEncoding.EncodeToString(j.BodyBase64)
		body["body_base64"] = text
	}
	request, err := json.Marshal(body)
	if err != nil {
		return nil
	}
	list := []copyText{{"as curl", "curl -H 'Content-Type: application/json' -d " + shellQuote(string(request)) + " http://127.0.0.1:7420/api/v1/jobs"}}
	if raw == "" && len(j.BodyBase64) > 0 {
		return list
	}
	return append(list,
		copyText{"as broker push", "broker push " + shellQuote(j.Queue) + " " + shellQuote(raw) + typeFlag(j)},
		copyText{"as gearman", "printf %s " + shellQuote(raw) + " | gearman -b -f " + shellQuote(j.Queue)})
}

func typeFlag(j *service.Job) string {
	if j.Type == j.Queue {
		return ""
	}
	return " --type " + shellQuote(j.Type)
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// linkGraph draws the jobs that a job is linked with: what it waits for stands on the left.
func linkGraph(j *service.Job) template.HTML {
	left := append([]string{}, j.After...)
	if j.Parent != "" {
		left = append(left, j.Parent)
	}
	if len(left) == 0 {
		return ""
	}
	const width, height, gap, columns = 190, 30, 10, 260
	rows := len(left)
	total := rows*(height+gap) - gap
	middle := total/2 - height/2
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="graph" role="img" aria-label="%s" width="%d" height="%d" viewBox="-2 -2 %d %d">`,
		"waits for "+plural(len(left), "job"), columns+width+4, total+4, columns+width+4, total+4)
	node := func(x, y int, name string, self bool) {
		class := ""
		if self {
			class = ` class="self"`
		}
		text := template.HTMLEscapeString(short(24, name))
		fmt.Fprintf(&b, `<a href="jobs/%s"><rect%s x="%d" y="%d" width="%d" height="%d" rx="5"/><text x="%d" y="%d">%s</text></a>`,
			template.HTMLEscapeString(url.PathEscape(name)), class, x, y, width, height, x+8, y+20, text)
	}
	edge := func(x1, y1, x2, y2 int) {
		fmt.Fprintf(&b, `<path d="M%d %d C%d %d %d %d %d %d"/>`, x1, y1, (x1+x2)/2, y1, (x1+x2)/2, y2, x2, y2)
	}
	for i, name := range left {
		y := i * (height + gap)
		node(0, y, name, false)
		edge(width, y+height/2, columns, middle+height/2)
	}
	node(columns, middle, j.ID, true)
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // all text in it is escaped
}

// asArgs reports whether text is an array of JSON, which is taken as a job's arguments.
func asArgs(text string) (json.RawMessage, bool) {
	trimmed := strings.TrimSpace(text)
	if !strings.HasPrefix(trimmed, "[") || !json.Valid([]byte(trimmed)) {
		return nil, false
	}
	return json.RawMessage(trimmed), true
}

// waitReasons is what a job waits for, as a list and as the job's own page say it.
var waitReasons = map[string]struct{ short, sentence string }{
	"worker":   {"waits for a worker", "It is ready and waits for a worker."},
	"paused":   {"queue is paused", "Its queue is paused."},
	"draining": {"broker is draining", "The broker is draining: no job is handed out."},
	"limit":    {"limit reached", "A limit of its queue is reached: it runs when a slot is free."},
	"time":     {"not due yet", "It is not due yet."},
	"jobs":     {"waits for other jobs", "It waits for other jobs to be done."},
	"batch":    {"waits for its batch", "It waits for its batch."},
	"broken":   {"will not run by itself", "A job that it waits for is gone without being done: run it now, or cancel it."},
}

// waitsFor says in a few words why a job does not run.
func waitsFor(j service.Job) string { return cmp.Or(waitReasons[j.Reason].short, j.Reason) }

// whyItWaits says it in a sentence.
func whyItWaits(j *service.Job) string { return cmp.Or(waitReasons[j.Reason].sentence, j.Reason) }
