package beanstalk

import (
	"strconv"
	"strings"
)

// dictionary writes a YAML dictionary in beanstalkd's style: a line for each key.
type dictionary []byte

func newDictionary() dictionary { return dictionary("---\n") }

func (d *dictionary) text(key, value string) {
	*d = append(append(append(append(*d, key...), ": "...), value...), '\n')
}

func (d *dictionary) number(key string, n uint64) { d.text(key, strconv.FormatUint(n, 10)) }

// count is number for values that are never negative.
func (d *dictionary) count(key string, n int) { d.number(key, uint64(max(n, 0))) }

// name is text for the name of a tube.
func (d *dictionary) name(key, value string) { d.text(key, quoted(value)) }

// quoted puts quotes around a name that YAML would not read as text. Other names have no quotes, because simple parsers
// do not remove them.
func quoted(name string) string {
	_, number := strconv.ParseFloat(strings.ReplaceAll(name, "_", ""), 64)
	_, integer := strconv.ParseInt(name, 0, 64)
	switch strings.ToLower(name) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null", "~", ".inf", "-.inf", "+.inf", ".nan":
		return `"` + name + `"`
	}
	if number == nil || integer == nil || strings.Trim(name, "0123456789_.+-") == "" {
		return `"` + name + `"`
	}
	return name
}

// printable converts any text to a quoted ASCII value.
func printable(s string) string {
	return `"` + strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' || r == ':' {
			return '_'
		}
		return r
	}, s) + `"`
}

// list is a YAML list.
func list(names []string) []byte {
	b := []byte("---\n")
	for _, name := range names {
		b = append(append(append(b, "- "...), name...), '\n')
	}
	return b
}
