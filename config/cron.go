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
	Queue    string // as written in the settings; empty: Faktory's default queue
	Type     string

	// Unit is the job in the JSON form of a Faktory push, without a jid.
	Unit []byte
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

// job builds the work unit.
func (r cronReader) job(table map[string]any, c *Cron) {
	unit := map[string]any{"args": []any{}}
	for _, name := range []string{"type", "queue"} {
		if v, ok := table[name]; ok {
			unit[name] = r.text("job."+name, v)
		}
	}
	for _, name := range []string{"retry", "reserve_for", "backtrace"} {
		if v, ok := table[name]; ok {
			unit[name] = r.number("job."+name, v)
		}
	}
	if v, ok := table["args"]; ok {
		if args, isList := asList(v); isList {
			unit["args"] = args
		} else {
			r.complain(r.prefix+"job.args", "not a list (%s)", r.source)
		}
	}
	if v, ok := table["custom"]; ok {
		if _, isTable := v.(map[string]any); !isTable {
			r.complain(r.prefix+"job.custom", "not a table (%s)", r.source)
		}
		unit["custom"] = v
	}
	for _, name := range []string{"type", "queue", "retry", "reserve_for", "backtrace", "args", "custom"} {
		delete(table, name)
	}
	r.unknown("job.", table)
	c.Type, _ = unit["type"].(string)
	c.Queue, _ = unit["queue"].(string)
	if c.Type == "" {
		r.complain(r.prefix+"job.type", "missing")
	}
	if n, ok := unit["reserve_for"].(int64); ok && (n < 0 || n > maxReserve) {
		r.complain(r.prefix+"job.reserve_for", "%d is not between 0 and %d", n, maxReserve)
	}
	delete(unit, "type")
	unit["jobtype"] = c.Type
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // workers of other protocols receive the arguments unchanged
	if err := e.Encode(unit); err != nil {
		r.complain(r.prefix+"job", "%v", err) // such as NaN
	}
	c.Unit = bytes.TrimSpace(text.Bytes())
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
