package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Sources are the sources of settings. Later sources override earlier ones.
type Sources struct {
	File  string            // path of a TOML file; empty: the file in BROKER_CONFIG, if set
	Env   []string          // "NAME=value", as in os.Environ
	Flags map[string]string // by the path of the setting
}

// Problem is one mistake, in a setting or a file.
type Problem struct {
	Setting string
	Text    string
}

func (p Problem) Error() string { return p.Setting + ": " + p.Text }

// Load applies all sources to the defaults and validates the result; checks find the mistakes that only the caller can
// see. The error joins one Problem for each mistake.
func Load(s Sources, checks ...func(*Config) []Problem) (Config, error) {
	c := Default()
	l := loader{settings: make(map[string]Setting), renamed: renamed}
	for _, setting := range Settings(&c) {
		l.settings[setting.Path] = setting
	}
	env := parseEnv(s.Env)
	file := cmp.Or(s.File, env["BROKER_CONFIG"])
	if file != "" {
		l.file(file, &c)
	}
	l.env(env)
	for _, path := range slices.Sorted(maps.Keys(s.Flags)) {
		l.set(path, s.Flags[path], "flag")
	}
	l.password("http.password", &c.HTTP.Password)
	for _, p := range c.WireProtocols() {
		if p.Password != nil {
			l.password(p.Name+".password", p.Password)
		}
	}
	l.problems = append(l.problems, c.problems(l.broken)...)
	for _, check := range checks {
		l.problems = append(l.problems, check(&c)...)
	}
	if file != "" {
		l.addLines(file)
	}
	c.sources = l.sources
	return c, l.err()
}

// Source is the source of a setting's value: default, the path of the file, the name in the environment, or flag.
func (c *Config) Source(path string) string { return cmp.Or(c.sources[path], "default") }

// loader collects problems instead of stopping at the first one.
type loader struct {
	settings map[string]Setting
	renamed  map[string]string // new paths of renamed settings, by their old paths
	problems []Problem
	sources  map[string]string // sources of settings that are not at their default
	broken   map[string]bool   // settings whose value could not be read: they are not validated
}

func (l *loader) complain(setting, format string, args ...any) {
	l.problems = append(l.problems, Problem{Setting: setting, Text: fmt.Sprintf(format, args...)})
}

func (l *loader) err() error {
	errs := make([]error, len(l.problems))
	for i, p := range l.problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// set sets one setting; the problem, if any, names the source.
func (l *loader) set(path string, to any, source string) {
	if l.sources == nil {
		l.sources = make(map[string]string)
	}
	l.sources[path] = source
	if err := l.settings[path].set(to); err != nil {
		l.complain(path, "%v (%s)", err, source)
		if l.broken == nil {
			l.broken = make(map[string]bool)
		}
		l.broken[path] = true
	}
}

// file reads a TOML file.
func (l *loader) file(name string, c *Config) {
	var tree map[string]any
	if _, err := toml.DecodeFile(name, &tree); err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			l.complain(name, "line %d: %s", syntax.Position.Line, syntax.Message)
			return
		}
		l.complain(name, "%v", reason(err))
		return
	}
	l.routes(take(tree, "route"), name, c)
	l.throttles(take(tree, "throttles"), name, c)
	l.queueLimits(take(tree, "queue_limit"), name, c)
	l.sharings(take(tree, "sharing"), name, c)
	c.QueuePolicies = l.policies(QueuePolicy, "queue", take(tree, QueuePolicy), name)
	c.TypePolicies = l.policies(TypePolicy, "type", take(tree, TypePolicy), name)
	l.keepDone(take(tree, "keep_done"), name, c)
	l.crons(take(tree, "cron"), name, c)
	l.principals(take(tree, "principal"), name, c)
	l.pushes(take(tree, "push"), name, c)
	l.table("", tree, name)
}

// table sets the settings in a TOML table.
func (l *loader) table(prefix string, tree map[string]any, source string) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		path := prefix + key
		sub, isTable := tree[key].(map[string]any)
		_, known := l.settings[path]
		switch {
		case known:
			l.set(path, tree[key], source)
		case isTable && l.section(path+"."):
			l.table(path+".", sub, source)
		case l.renamed[path] != "":
			l.complain(path, "was renamed to %s (%s)", l.renamed[path], source)
		default:
			l.complain(path, "unknown setting%s (%s)", l.likely(path, isTable), source)
		}
	}
}

func (l *loader) section(prefix string) bool {
	for path := range l.settings {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// tables returns the tables of a list; none if v is nil, because the list is not in the file.
func (l *loader) tables(name string, v any, source string) []map[string]any {
	tables, ok := v.([]map[string]any)
	if v != nil && !ok {
		l.complain(name, "must be written as [[%s]] (%s)", name, source)
	}
	return tables
}

// routes reads [[route]].
func (l *loader) routes(v any, source string, c *Config) {
	for i, table := range l.tables("route", v, source) {
		c.Routes = append(c.Routes, Route{})
		l.row(fmt.Sprintf("route[%d].", i), reflect.ValueOf(&c.Routes[i]).Elem(), table, renamedInRoute, source)
	}
}

// throttles reads [throttles]: the limits of each queue.
func (l *loader) throttles(v any, source string, c *Config) {
	for queue, fields := range l.byQueue("throttles", "{concurrency = 4, slot_for_s = 60}", v, source) {
		if c.Throttles == nil {
			c.Throttles = make(map[string][]byte)
		}
		c.Throttles[queue] = l.members("throttles."+queue, fields, source)
	}
}

// keepDone reads [keep_done]: how long each queue keeps finished jobs.
func (l *loader) keepDone(v any, source string, c *Config) {
	for queue, fields := range l.byQueue("keep_done", `{for = "24h", count = 1000}`, v, source) {
		if c.KeepDone == nil {
			c.KeepDone = make(map[string]KeepDone)
		}
		var row KeepDone
		l.row("keep_done."+queue+".", reflect.ValueOf(&row).Elem(), fields, nil, source)
		c.KeepDone[queue] = row
	}
}

// byQueue yields the rows of a table with a row for each queue, in the order of their names.
func (l *loader) byQueue(name, example string, v any, source string) iter.Seq2[string, map[string]any] {
	return func(yield func(string, map[string]any) bool) {
		table, ok := v.(map[string]any)
		if v != nil && !ok {
			l.complain(name, "not a table (%s)", source)
		}
		for _, queue := range slices.Sorted(maps.Keys(table)) {
			fields, ok := table[queue].(map[string]any)
			if !ok {
				l.complain(name+"."+queue, "must be written as %s (%s)", example, source)
			} else if !yield(queue, fields) {
				return
			}
		}
	}
}

// members are settings in JSON that this package does not check.
func (l *loader) members(at string, table map[string]any, source string) []byte {
	members, err := json.Marshal(table)
	if err != nil {
		l.complain(at, "%v (%s)", err, source) // such as NaN
	}
	return members
}

// row sets the fields of one element of a list.
func (l *loader) row(prefix string, v reflect.Value, table map[string]any, renamed map[string]string, source string) {
	row := loader{settings: make(map[string]Setting), renamed: make(map[string]string)}
	for before, now := range renamed {
		row.renamed[prefix+before] = now
	}
	for _, setting := range leaves(prefix, v) {
		row.settings[setting.Path] = setting
	}
	row.table(prefix, table, source)
	l.problems = append(l.problems, row.problems...)
}

// env reads the environment. It ignores BROKER_ variables that are not settings: orchestrators set variables such as
// BROKER_SERVICE_HOST for a service called broker.
func (l *loader) env(env map[string]string) {
	if text, ok := env["FAKTORY_PASSWORD"]; ok {
		l.set("faktory.password", text, "FAKTORY_PASSWORD")
	}
	for _, path := range slices.Sorted(maps.Keys(l.settings)) {
		name := l.settings[path].Env()
		if text, ok := env[name]; ok {
			l.set(path, text, name)
		}
	}
	for _, before := range slices.Sorted(maps.Keys(l.renamed)) {
		if name := envName(before); env[name] != "" {
			l.complain(name, "was renamed to %s", envName(l.renamed[before]))
		}
	}
}

// password replaces a file name with the content of the file.
func (l *loader) password(setting string, text *string) {
	if !strings.HasPrefix(*text, "/") {
		return
	}
	file := *text
	read, err := os.ReadFile(file)
	if err != nil {
		l.complain(setting, "read %s: %v", file, reason(err))
		return
	}
	*text = strings.TrimSpace(string(read))
	if *text == "" {
		l.complain(setting, "file %s is empty", file)
	}
}

// reason drops the file name from a file error, because the problem names it already.
func reason(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func parseEnv(env []string) map[string]string {
	m := make(map[string]string, len(env))
	for _, pair := range env {
		if name, value, ok := strings.Cut(pair, "="); ok {
			m[name] = value
		}
	}
	return m
}

func take(m map[string]any, key string) any {
	v := m[key]
	delete(m, key)
	return v
}
