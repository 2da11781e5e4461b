package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"broker/core"
)

// Row is one setting.
type Row struct {
	Name  string   // in JSON and in the settings file
	Was   string   // earlier name in the settings file, which still works; empty: none
	Help  string   // what it does
	Label string   // in a form
	Says  string   // a value in a sentence, with %s in its place; empty: the name, and the value
	Words []string // the possible words of a Word
	Unit  Unit

	Low, High float64 // bounds of a number
	Above     bool    // Low itself is too low
}

// Unit says what a value is.
type Unit string

// Count: a whole number. Seconds: a number of seconds, in texts a span such as 90s, 15m or 2d. Rate: a number a second.
// Word: one of Words. Waits: a backoff. Ending: what happens after the last try.
const (
	Count   Unit = "count"
	Seconds Unit = "seconds"
	Rate    Unit = "per second"
	Word    Unit = "word"
	Waits   Unit = "waits"
	Ending  Unit = "ending"
)

// Error says which setting is wrong.
type Error struct {
	Field  string // path of the setting in the input
	Detail string // a sentence
}

func (e *Error) Error() string { return e.Detail }

func wrong(field, format string, args ...any) *Error {
	return &Error{Field: field, Detail: fmt.Sprintf(format, args...)}
}

// rowsOf reads the rows of a struct from its tags. It panics if a tag is wrong, which every test would show.
func rowsOf[T any]() (rows []Row) {
	of := reflect.TypeFor[T]()
	for i := range of.NumField() {
		tag := of.Field(i).Tag
		if tag.Get("readOnly") != "" {
			continue
		}
		r := Row{
			Was: tag.Get("was"), Help: tag.Get("doc"), Label: tag.Get("label"), Says: tag.Get("says"),
			Unit: Unit(tag.Get("unit")),
		}
		r.Name, _, _ = strings.Cut(tag.Get("json"), ",")
		if words := tag.Get("enum"); words != "" {
			r.Words = strings.Split(words, ",")
		}
		for _, b := range []struct {
			tag   string
			bound *float64
		}{{"minimum", &r.Low}, {"exclusiveMinimum", &r.Low}, {"maximum", &r.High}} {
			text, there := tag.Lookup(b.tag)
			if !there {
				continue
			}
			var err error
			if *b.bound, err = strconv.ParseFloat(text, 64); err != nil {
				panic("schema: a bound of " + r.Name + " is no number: " + text)
			}
			r.Above = r.Above || b.tag == "exclusiveMinimum"
		}
		rows = append(rows, r)
	}
	return rows
}

// Base is the name without its unit, as in a form.
func (r *Row) Base() string { return strings.TrimSuffix(strings.TrimSuffix(r.Name, "_s"), "_per") }

// Flag is the name of its flag.
func (r *Row) Flag() string { return strings.ReplaceAll(r.Base(), "_", "-") }

// FlagHelp is the help of its flag.
func (r *Row) FlagHelp() string {
	switch r.Unit {
	case Waits:
		return "waits between a failure and the next try: a list such as 10s,1m,10m of which the last one is repeated,\n" +
			"or constant:10s, linear:10s or exponential:10s"
	case Ending:
		return "after the last try: dead, drop or move:QUEUE"
	case Seconds:
		return r.Help + ", such as 90s, 15m or 2d"
	case Count, Rate, Word:
	}
	return r.Help
}

// Bounds are the possible values in words; empty: see Help.
func (r *Row) Bounds() string {
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	switch {
	case len(r.Words) > 0:
		return strings.Join(r.Words, ", ")
	case r.High == 0:
		return ""
	case r.Above:
		return "above " + number(r.Low) + ", at most " + number(r.High)
	}
	return number(r.Low) + " to " + number(r.High)
}

// number reads a number within its bounds.
func (r *Row) number(field string, value json.RawMessage) (n float64, err error) {
	var whole uint32
	if r.Unit == Count {
		if err = json.Unmarshal(value, &whole); err == nil {
			n = float64(whole)
		}
	} else {
		err = json.Unmarshal(value, &n)
	}
	if err != nil || n < r.Low || n > r.High || r.Above && n == r.Low {
		return 0, r.outside(field)
	}
	return n, nil
}

// outside is the error of a number that is none, or not within the bounds.
func (r *Row) outside(field string) *Error {
	what := map[Unit]string{Count: "a whole number", Seconds: "a number of seconds", Rate: "a number a second"}[r.Unit]
	return wrong(field, "%s must be %s, %s", r.Name, what, r.Bounds())
}

// find returns the row with a name.
func find(rows []Row, name string) *Row {
	for i := range rows {
		if rows[i].Name == name {
			return &rows[i]
		}
	}
	return nil
}

// longest is the longest time of a setting, in seconds.
var longest = core.MaxBackoff.Seconds()
