package console

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"broker/access"
	"broker/operate/service"
)

//go:embed templates
var templateFiles embed.FS

// pages are the templates by name, each within the frame.
type pages struct{ byName map[string]*template.Template }

func loadPages(c *Console) (*pages, error) {
	frame, err := template.New("frame.html").Funcs(c.functions()).ParseFS(templateFiles, "templates/frame.html",
		"templates/parts_*.html")
	if err != nil {
		return nil, err
	}
	p := &pages{byName: map[string]*template.Template{}}
	files, err := templateFiles.ReadDir("templates")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".html")
		if name == "frame" || strings.HasPrefix(name, "parts_") {
			continue
		}
		page, err := template.Must(frame.Clone()).ParseFS(templateFiles, path.Join("templates", f.Name()))
		if err != nil {
			return nil, err
		}
		p.byName[name] = page
	}
	return p, nil
}

// functions are what templates call.
func (c *Console) functions() template.FuncMap {
	return template.FuncMap{
		// texts and numbers
		"num":       num,
		"brief":     brief,
		"float":     float,
		"percent":   percent,
		"bytes":     size,
		"plural":    plural,
		"times":     times,
		"short":     short,
		"join":      strings.Join,
		"json":      chartJSON,
		"minus":     func(a, b int) int { return a - b },
		"fewer":     func(n int, of uint32) bool { return n < int(of) },
		"list":      func(items ...any) []any { return items },
		"stateName": func(s string) string { return strings.ToLower(stateLabel(s)) },
		"protoName": protocolLabel,

		// times
		"seconds":    seconds,
		"ago":        c.ago,
		"agoOf":      func(t time.Time) template.HTML { return c.ago(&t) },
		"until":      c.until,
		"age":        c.age,
		"took":       c.took,
		"clock":      clockTag,
		"clockOf":    func(t time.Time) template.HTML { return clockTag(&t) },
		"clockShort": c.clockShort,
		"relative":   isRelative,

		// addresses and pictures
		"asset":       c.assets.url,
		"icon":        icon,
		"pathEscape":  pathEscape,
		"queryEscape": url.QueryEscape,

		// jobs, queues and what else pages show
		"row":         newJobRow,
		"shownState":  shownState,
		"jobName":     jobName,
		"why":         waitsFor,
		"slow":        isSlow,
		"hasNote":     hasNote,
		"rate":        rateCell,
		"keyLabel":    keyLabel,
		"batchLabel":  batchLabel,
		"weightLines": weightLines,
		"slots":       slotsOf,
		"mayChange":   mayChange,
		"pending":     pendingText,
		"auditID":     service.AuditID,
		"runs":        func(s service.Schedule) []runMark { return runMarks(s, stripRuns) },
		"undoable": func(e service.AuditEntry) bool {
			return e.UndoUntil != nil && c.options.Now().Before(*e.UndoUntil)
		},

		// forms
		"value":   fieldValue,
		"invalid": markInvalid,
	}
}

// frameData is the data of the frame around a page.
type frameData struct {
	Title, Nav, Root, Self, Note, Version string
	// of the page's scripts, which its content security policy names; without characters that HTML escapes, because
	// htmx compares it
	Nonce        string
	Theme        string // light, dark; empty: as the system
	User         string // empty: logins are off
	Session      bool   // the browser has a session
	Live         bool
	HasList      bool   // the page has an element with the id list
	Turn         uint64 // of the event stream
	Counts       counts
	Rights       rights
	Work, System []choice
	Running      []service.Operation // operations that have not ended
	RunningMore  int                 // number of operations that are not shown
	Made         []string            // the changes of the note that can be undone
	Data         any
}

// listTemplates are the pages with a list of rows, to which people who use no pointer can jump.
var listTemplates = []string{
	"jobs", "queues", "workers", "limits", "schedules", "batches", "operations", "audit", "finished",
}

// maxRunning limits the number of operations that a page shows.
const maxRunning = 4

// counts are shown beside the navigation entries.
type counts struct{ Queues, Leased, Scheduled, Retrying, Dead int }

// rights decide which pages and forms are shown. The service checks them again.
type rights struct {
	Produce, Operate           bool // for the page's queue; on pages without one, for any queue
	ReadAll, OperateAll, Admin bool // for all queues, and for data that belongs to no queue
	ReadSome                   bool // for at least one queue

	caller service.Caller
}

func rightsOf(c service.Caller, queue string) rights {
	p := c.Current()
	r := rights{
		p.MaySome(access.Produce), p.MaySome(access.Operate), p.MayAll(access.Read), p.MayAll(access.Operate),
		p.MayAll(access.Admin), p.MaySome(access.Read), c,
	}
	if queue != "" {
		r.Produce, r.Operate = r.may(access.Produce, queue), r.may(access.Operate, queue)
	}
	return r
}

func (r rights) may(role access.Role, queue string) bool {
	return r.caller.Current().May(role, queue)
}

// mayChange reports whether a page may offer changes of a queue.
func mayChange(r rights, queue string) bool { return r.may(access.Operate, queue) }

// frame reads the data of the frame around a view.
func (c *Console) frame(w http.ResponseWriter, r *http.Request, caller service.Caller, v *view) frameData {
	d := frameData{
		Title: v.title, Nav: cmp.Or(v.nav, entryOf(r)), Root: root(r),
		Self: cmp.Or(strings.TrimPrefix(r.URL.RequestURI(), "/"), "./"), Nonce: rand.Text(),
		Version: c.options.Version, Data: v.data, Theme: theme(r),
		Live: r.Method == http.MethodGet && !v.still && caller.Principal != nil,
		Turn: v.turn, HasList: slices.Contains(listTemplates, v.page),
		Rights: rightsOf(caller, v.queue),
	}
	d.Note, d.Made = flash(w, r)
	d.Work, d.System = d.Rights.pages(workPages), d.Rights.pages(systemPages)
	if _, inSession := c.sessions.caller(r); inSession {
		d.User, d.Session = caller.Name(), true
	}
	s := c.options.Port.Service()
	if s == nil || caller.Principal == nil {
		return d
	}
	if sum, err := s.Summary(r.Context(), caller); err == nil { // otherwise the caller may not see it
		d.Counts = counts{sum.Queues, sum.Jobs["leased"], sum.Jobs["scheduled"], sum.Jobs["retrying"], sum.Jobs["dead"]}
	}
	if v.nav != "operations" {
		d.Running = s.UnfinishedOperations(caller)
		d.RunningMore = max(len(d.Running)-maxRunning, 0)
		d.Running = d.Running[:len(d.Running)-d.RunningMore]
	}
	return d
}

// pages removes the pages that the caller may not see.
func (r rights) pages(all []choice) []choice {
	return slices.DeleteFunc(slices.Clone(all), func(page choice) bool {
		return !r.Admin && slices.Contains(adminPages, page.Value) ||
			!r.ReadAll && !slices.Contains(partialPages, page.Value)
	})
}

// render writes a page.
func (c *Console) render(w http.ResponseWriter, r *http.Request, caller service.Caller, v *view) {
	page, ok := c.pages.byName[v.page]
	if !ok {
		http.Error(w, "no page "+v.page, http.StatusInternalServerError)
		return
	}
	d := c.frame(w, r, caller, v)
	var b bytes.Buffer
	if err := page.ExecuteTemplate(&b, "frame.html", d); err != nil {
		c.options.Failed(v.page, err)
		http.Error(w, "the page cannot be rendered", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Content-Security-Policy",
		"default-src 'none'; script-src 'self' 'nonce-"+d.Nonce+"'; style-src 'self'; img-src 'self' data:; "+
			"connect-src 'self'; form-action 'self'; base-uri 'self'; frame-ancestors 'none'")
	w.WriteHeader(cmp.Or(v.status, http.StatusOK))
	_, _ = w.Write(b.Bytes()) // the client may have disconnected
}

// num formats a count with separators.
func num(n any) string {
	text := fmt.Sprint(n)
	from := len(text) - 3
	for ; from > 0 && text[from-1] != '-'; from -= 3 {
		text = text[:from] + "\u202f" + text[from:]
	}
	return text
}

// brief formats a count in few characters.
func brief(n int) string {
	f, unit := float64(n), ""
	switch {
	case n < 10_000:
		return num(n)
	case n < 1_000_000:
		f, unit = f/1e3, "k"
	default:
		f, unit = f/1e6, "M"
	}
	if f < 100 {
		return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") + unit
	}
	return strconv.FormatFloat(f, 'f', 0, 64) + unit
}

// plural formats a count with its noun: "1 queue", "2 queues".
func plural(n any, noun string) string {
	text := num(n)
	switch {
	case text == "1":
		return "1 " + noun
	case strings.HasSuffix(noun, "ch"):
		return text + " " + noun + "es"
	case noun == "entry":
		return text + " entries"
	}
	return text + " " + noun + "s"
}

// shownState is the state of a job on pages: a job that is kept after a bad end is failed, cancelled or expired, and
// not done.
func shownState(j service.Job) string {
	switch {
	case j.State != "done" || !j.Failed:
		return j.State
	case j.Outcome != nil && (j.Outcome.Cause == "cancelled" || j.Outcome.Cause == "expired"):
		return j.Outcome.Cause
	}
	return "failed"
}

// stateLabel returns the displayed name of a state.
func stateLabel(state string) string {
	if state == "leased" {
		return "Running"
	}
	if state == "" {
		return ""
	}
	return strings.ToUpper(state[:1]) + state[1:]
}

// entryOf returns the navigation entry for the path of a request.
func entryOf(r *http.Request) string {
	entry, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return entry
}

// float formats a rate.
func float(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f < 10:
		return strconv.FormatFloat(f, 'f', 2, 64)
	}
	return num(int64(f + 0.5))
}

// seconds formats a number of seconds as a duration.
func seconds(s float64) string { return span(time.Duration(s * float64(time.Second))) }

// span formats a duration in its two largest units.
func span(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d/time.Microsecond)
	case d < time.Second:
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'g', 3, 64) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'g', 2, 64) + " s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %02d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %02d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// size formats a number of bytes.
func size(n any) string {
	f, err := strconv.ParseFloat(fmt.Sprint(n), 64)
	if err != nil {
		return fmt.Sprint(n)
	}
	for _, unit := range []string{"B", "KiB", "MiB", "GiB", "TiB"} {
		if f < 1024 || unit == "TiB" {
			if unit == "B" {
				return strconv.FormatFloat(f, 'f', 0, 64) + " B"
			}
			return strconv.FormatFloat(f, 'f', 1, 64) + " " + unit
		}
		f /= 1024
	}
	return ""
}

// ago formats an instant as the time since it, or until it if it is in the future. The instant itself is in the
// tooltip.
func (c *Console) ago(t *time.Time) template.HTML {
	return c.relative(t, func(d time.Duration) string {
		if d < 0 {
			return "in " + span((-d).Round(time.Second))
		}
		return span(d.Round(time.Second)) + " ago"
	})
}

// age formats the time since an instant.
func (c *Console) age(t *time.Time) template.HTML {
	return c.relative(t, func(d time.Duration) string { return span(max(d, 0).Round(time.Second)) })
}

func (c *Console) until(t *time.Time) template.HTML {
	return c.relative(t, func(d time.Duration) string {
		if d > 0 {
			return "now"
		}
		return "in " + span((-d).Round(time.Second))
	})
}

func (c *Console) relative(t *time.Time, text func(time.Duration) string) template.HTML {
	if t == nil || t.IsZero() {
		return ""
	}
	return timeTag(t, "", text(c.options.Now().Sub(*t)))
}

// timeTag is an instant as an element of a page. The instant is also in its attributes: the script shows it in the zone
// that the browser's user has chosen. text is made of numbers and units only.
func timeTag(t *time.Time, attribute, text string) template.HTML {
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s UTC"%s>%s</time>`,
		t.UTC().Format("2006-01-02T15:04:05.000Z"), clockTime(t), attribute, text))
}

// isClock marks the elements of instants that show a clock time.
const isClock = " data-clock"

// clockTag is clockTime as an element of a page.
func clockTag(t *time.Time) template.HTML {
	if t == nil || t.IsZero() {
		return ""
	}
	return timeTag(t, isClock, clockTime(t))
}

// clockTime formats an instant for a table.
func clockTime(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// clockShort formats an instant: the time if it is today, otherwise the date.
func (c *Console) clockShort(t *time.Time) template.HTML {
	if t.UTC().Format(time.DateOnly) == c.options.Now().UTC().Format(time.DateOnly) {
		return timeTag(t, isClock, t.UTC().Format("15:04:05.000"))
	}
	return timeTag(t, isClock, t.UTC().Format("2 Jan 15:04:05"))
}

// percent is part of whole, for a progress element.
func percent(part, whole any) int {
	a, _ := strconv.ParseFloat(fmt.Sprint(part), 64)  // an invalid number is 0
	b, _ := strconv.ParseFloat(fmt.Sprint(whole), 64) // likewise
	if b <= 0 {
		return 0
	}
	return int(min(100, 100*a/b))
}

// short cuts text for a table.
func short(n int, text string) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n]) + "…"
}

// chartJSON encodes data for the page's script.
func chartJSON(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// pretty indents JSON.
func pretty(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// with replaces parameters of a query by pairs of names and values; an empty value removes a parameter.
func with(query url.Values, pairs ...string) template.URL {
	q := url.Values{}
	maps.Copy(q, query)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			q.Del(pairs[i])
		} else {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return "?"
	}
	return template.URL("?" + q.Encode())
}
