package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"broker/core/crontab"
)

// Cron is a job that the broker submits on a schedule.
type Cron struct {
	Name     string // empty: identified by its type and schedule
	Schedule string // in the syntax of crontab.Parse
	Missed   string // treatment of missed runs: skip (the default), one or all
	Backlog  int    // runs are skipped while this many of its jobs wait; 0: no limit
	Job      CronJob
}

// CronJob is the job of a Cron, as Faktory Enterprise describes it. nil members are not in the settings.
type CronJob struct {
	Type       string
	Queue      string // empty: Faktory's default queue
	Args       []byte // a list in JSON
	Custom     []byte // an object in JSON; nil: it has none
	Retry      *int64
	ReserveFor *int64 // seconds
	Backtrace  *int64
}

// maxBacklog is the largest backlog.
const maxBacklog = 1_000_000

// maxReserve is Faktory's limit of reserve_for, in seconds.
const maxReserve = 86400

// crons reads [[cron]], which has the syntax of Faktory Enterprise.
func (l *loader) crons(v any, source string, c *Config) {
	for i, table := range l.tables("cron", v, source) {
		r := cronReader{loader: l, prefix: fmt.Sprintf("cron[%d].", i), source: source}
		entry := r.entry(table)
		if entry.Name != "" && slices.ContainsFunc(c.Crons, func(o Cron) bool { return o.Name == entry.Name }) {
			r.complain(r.prefix+"name", "%q is the name of another entry (%s)", entry.Name, source)
		}
		c.Crons = append(c.Crons, entry)
	}
}

// cronReader reads one entry.
type cronReader struct {
	*loader
	prefix, source string
}

func (r cronReader) entry(table map[string]any) Cron {
	var c Cron
	c.Schedule = r.text("schedule", take(table, "schedule"))
	if _, err := crontab.Parse(c.Schedule, time.UTC); err != nil {
		r.complain(r.prefix+"schedule", "%q: %v", c.Schedule, err)
	} else if err := crontab.CheckSteps(c.Schedule); err != nil {
		r.complain(r.prefix+"schedule", "%q: %v", c.Schedule, err)
	}
	c.Name = r.text("name", take(table, "name"))
	if c.Missed = r.text("missed",
		take(table, "missed")); !slices.Contains([]string{"", "skip", "one", "all"}, c.Missed) {
		r.complain(r.prefix+"missed", "%q is not skip, one or all (%s)", c.Missed, r.source)
	}
	if v := take(table, "backlog"); v != nil {
		n := r.number("backlog", v)
		if c.Backlog = int(n); n < 0 || n > maxBacklog {
			r.complain(r.prefix+"backlog", "%d is not between 0 and %d", n, maxBacklog)
		}
	}
	job, ok := take(table, "job").(map[string]any)
	if !ok {
		r.complain(r.prefix+"job", "the table [cron.job] is missing (%s)", r.source)
	}
	r.unknown("", table)
	if ok {
		r.job(job, &c)
	}
	return c
}

// job reads [cron.job].
func (r cronReader) job(table map[string]any, c *Cron) {
	j := &c.Job
	j.Type, j.Queue = r.text("job.type", take(table, "type")), r.text("job.queue", take(table, "queue"))
	for name, to := range map[string]**int64{
		"retry": &j.Retry, "reserve_for": &j.ReserveFor, "backtrace": &j.Backtrace,
	} {
		if v, ok := table[name]; ok {
			n := r.number("job."+name, v)
			*to = &n
			delete(table, name)
		}
	}
	args := []any{}
	if v, ok := table["args"]; ok {
		var isList bool
		if args, isList = asList(v); !isList {
			r.complain(r.prefix+"job.args", "not a list (%s)", r.source)
		}
		delete(table, "args")
	}
	j.Args = r.json(args)
	if v, ok := table["custom"]; ok {
		if _, isTable := v.(map[string]any); !isTable {
			r.complain(r.prefix+"job.custom", "not a table (%s)", r.source)
		}
		j.Custom = r.json(v)
		delete(table, "custom")
	}
	r.unknown("job.", table)
	if j.Type == "" {
		r.complain(r.prefix+"job.type", "missing")
	}
	if n := j.ReserveFor; n != nil && (*n < 0 || *n > maxReserve) {
		r.complain(r.prefix+"job.reserve_for", "%d is not between 0 and %d", *n, maxReserve)
	}
}

// json writes a value of the job. Workers of other protocols receive the arguments unchanged.
func (r cronReader) json(v any) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		r.complain(r.prefix+"job", "%v", err) // such as NaN
	}
	return bytes.TrimSpace(text.Bytes())
}

func (r cronReader) text(name string, v any) string {
	text, ok := v.(string)
	if !ok && v != nil {
		r.complain(r.prefix+name, "%v is not a string (%s)", v, r.source)
	}
	return text
}

func (r cronReader) number(name string, v any) int64 {
	n, err := parseInt(v)
	if err != nil {
		r.complain(r.prefix+name, "%v (%s)", err, r.source)
	}
	return n
}

func (r cronReader) unknown(prefix string, table map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(table)) {
		r.complain(r.prefix+prefix+key, "unknown setting (%s)", r.source)
	}
}

// asList accepts both forms of a TOML list: an array of values, and [[cron.job.args]].
func asList(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case []map[string]any:
		list := make([]any, len(v))
		for i, table := range v {
			list[i] = table
		}
		return list, true
	}
	return nil, false
}
