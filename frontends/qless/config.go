package qless

import (
	"maps"
	"slices"
)

// config holds the options that clients have set, in the order of their first use.
type config struct {
	names  []string
	values map[string]string
}

// defaults of options, in the order of the script.
var defaults = []struct {
	name  string
	value any
}{
	{"application", "qless"},
	{"heartbeat", 60.0},
	{"grace-period", 10.0},
	{"stats-history", 30.0},
	{"histogram-history", 7.0},
	{"jobs-history-count", 50000.0},
	{"jobs-history", 604800.0},
}

// get returns the value of an option: the string that was set, the default, or nil.
func (c *config) get(name string) any {
	if v, set := c.values[name]; set {
		return v
	}
	for _, d := range defaults {
		if d.name == name {
			return d.value
		}
	}
	return nil
}

// number returns the value of an option if it is a number.
func (c *config) number(name string) (float64, bool) {
	switch v := c.get(name).(type) {
	case float64:
		return v, true
	case string:
		return parseNumber(v)
	}
	return 0, false
}

// numberOr returns the value of an option if it is a number, and otherwise the given one.
func (c *config) numberOr(name string, otherwise float64) float64 {
	if f, ok := c.number(name); ok {
		return f
	}
	return otherwise
}

// heartbeat is the duration of locks in a queue.
func (c *config) heartbeat(queue string) (float64, error) {
	name := queue + "-heartbeat"
	if _, set := c.values[name]; !set {
		name = "heartbeat"
	}
	f, ok := c.number(name)
	if !ok {
		return 0, fault("attempt to perform arithmetic on a nil value")
	}
	return f, nil
}

func (c *config) set(name, value string) {
	if c.values == nil {
		c.values = map[string]string{}
	}
	if _, there := c.values[name]; !there {
		c.names = append(slices.Clip(c.names), name)
	}
	c.values[name] = value
}

func (c *config) unset(name string) {
	if _, there := c.values[name]; there {
		delete(c.values, name)
		c.names = without(c.names, name)
	}
}

// table returns all options with their values.
func (c *config) table() *table {
	t := newTable(fieldCount(len(defaults)))
	for _, d := range defaults {
		t.set(d.name, d.value)
	}
	for _, name := range c.names {
		t.set(name, c.values[name])
	}
	return t
}

// configGet [option]
func configGet(t *tx, in *input) (any, error) {
	if name, ok := in.get(0); ok {
		return t.m.config.get(name), nil
	}
	return encode(t.m.config.table())
}

// configSet option value
func configSet(t *tx, in *input) (any, error) {
	name := in.need(0, `config.set(): Arg "option" missing`)
	value := in.need(1, `config.set(): Arg "value" missing`)
	if in.err != nil {
		return nil, in.err
	}
	t.publish("log", object("event", "config_set", "option", name, "value", value).json())
	t.changeConfig(func(c *config) { c.set(name, value) })
	return nil, nil
}

// configUnset option
func configUnset(t *tx, in *input) (any, error) {
	name := in.need(0, `config.unset(): Arg "option" missing`)
	if in.err != nil {
		return nil, in.err
	}
	t.publish("log", object("event", "config_unset", "option", name).json())
	t.changeConfig(func(c *config) { c.unset(name) })
	return nil, nil
}

// changeConfig applies a change to a copy of the options, so that it can be undone.
func (t *tx) changeConfig(change func(*config)) {
	was := t.m.config
	t.undo = append(t.undo, func() { t.m.config = was })
	next := config{names: was.names, values: maps.Clone(was.values)}
	change(&next)
	t.m.config = next
	t.note(configDoc)
}
