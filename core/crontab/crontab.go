// Package crontab parses the times of schedules: crontab's fields, names such as @hourly, and intervals.
package crontab

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/robfig/cron/v3"
)

// Schedule computes due times. Next depends only on its argument, so a restart does not change the times.
type Schedule interface {
	// Next returns the first due time after t, or the zero time if there is none.
	Next(t time.Time) time.Time
}

// fieldParser parses the five fields of crontab, an optional sixth one in front for seconds, and names such as @hourly.
var fieldParser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow |
	cron.Descriptor)

// everyWord is the prefix of an interval: @every 90s.
const everyWord = "@every "

// Parse parses a schedule. The time zone is local, or the one before the fields: "CRON_TZ=Europe/Vienna 30 6 * *
// 1-5". It may read the time zone from a file.
func Parse(text string, local *time.Location) (Schedule, error) {
	text = strings.TrimSpace(text)
	zone, rest, err := cutZone(text, local)
	if err != nil {
		return nil, err
	}
	if span, ok := strings.CutPrefix(rest, everyWord); ok {
		d, err := time.ParseDuration(strings.TrimSpace(span))
		if err != nil || d < time.Second || d%time.Second != 0 {
			return nil, fmt.Errorf("%q is not an interval of whole seconds such as 30s or 1h30m", span)
		}
		return interval(d), nil
	}
	if rest == "" {
		return nil, errors.New("is empty")
	}
	s, err := fieldParser.Parse(sundays(rest))
	if err != nil {
		if n := len(strings.Fields(rest)); rest[0] != '@' && (n < 5 || n > 6) {
			return nil, errors.New("expected five fields of crontab, or six with seconds first")
		}
		return nil, err
	}
	if hasEmptyField(s) {
		return nil, errors.New("a field has no value")
	}
	c := calendar{s, zone}
	if c.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, zone)).IsZero() { // a leap year
		return nil, errors.New("never due")
	}
	return c, nil
}

// fieldSpans are the numbers of values of the fields, and their names, seconds first.
var fieldSpans = []struct {
	name   string
	values int
}{{"second", 60}, {"minute", 60}, {"hour", 24}, {"day of the month", 31}, {"month", 12}, {"day of the week", 7}}

// CheckSteps refuses a step that is longer than its field, such as */90 in the minutes: it means the first value only.
// Schedules that were stored before keep that meaning, so Parse accepts it.
func CheckSteps(text string) error {
	fields := strings.Fields(text)
	if len(fields) > 0 && strings.Contains(fields[0], "=") { // a time zone
		fields = fields[1:]
	}
	if len(fields) < 5 || len(fields) > len(fieldSpans) {
		return nil // a word such as @daily
	}
	spans := fieldSpans[len(fieldSpans)-len(fields):]
	for i, field := range fields {
		for part := range strings.SplitSeq(field, ",") {
			_, step, _ := strings.Cut(part, "/")
			if n, err := strconv.Atoi(step); err == nil && n > spans[i].values {
				of := spans[i]
				return fmt.Errorf("the step %d is longer than the field %s, which has %d values", n, of.name, of.values)
			}
		}
	}
	return nil
}

// cutZone cuts the time zone off the front. The library could do it, but it panics if no field follows, and it must not
// get a second time zone.
func cutZone(text string, local *time.Location) (*time.Location, string, error) {
	named, ok := afterZoneWord(text)
	if !ok {
		return local, text, nil
	}
	name, rest := named, ""
	if end := strings.IndexFunc(named, unicode.IsSpace); end >= 0 {
		name, rest = named[:end], strings.TrimSpace(named[end:])
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return nil, "", fmt.Errorf("unknown time zone %q", name)
	}
	if _, again := afterZoneWord(rest); again {
		return nil, "", errors.New("names two time zones")
	}
	return zone, rest, nil
}

// afterZoneWord returns the text after a leading CRON_TZ= or TZ=.
func afterZoneWord(text string) (string, bool) {
	for _, word := range []string{"CRON_TZ=", "TZ="} {
		if named, ok := strings.CutPrefix(text, word); ok {
			return named, true
		}
	}
	return text, false
}

// hasEmptyField reports whether a field has no values. The library accepts a field with only a comma, and then searches
// five years second by second for a matching time.
func hasEmptyField(s cron.Schedule) bool {
	f, ok := s.(*cron.SpecSchedule)
	return ok && slices.Contains([]uint64{f.Second, f.Minute, f.Hour, f.Dom, f.Month, f.Dow}, 0)
}

// calendar is a schedule of fields. The library uses the time zone of its argument.
type calendar struct {
	s    cron.Schedule
	zone *time.Location
}

// Next implements Schedule.
func (c calendar) Next(t time.Time) time.Time { return c.s.Next(t.In(c.zone)) }

// interval is counted from the start of 1970, not from the start of the broker.
type interval time.Duration

// Next implements Schedule.
func (d interval) Next(t time.Time) time.Time {
	span := int64(time.Duration(d) / time.Second)
	n := t.Unix() / span
	return time.Unix((n+1)*span, 0).UTC()
}

// sundays replaces the day of the week 7 with 0: crontab accepts both, the library only 0.
func sundays(text string) string {
	fields := strings.Fields(text)
	if strings.HasPrefix(text, "@") || len(fields) < 5 || !strings.Contains(fields[len(fields)-1], "7") {
		return text
	}
	parts := strings.Split(fields[len(fields)-1], ",")
	for i, part := range parts {
		days, step, stepped := strings.Cut(part, "/")
		from, isRange := strings.CutSuffix(days, "-7")
		switch {
		case days == "7" && !stepped:
			parts[i] = "0"
		case isRange && (!stepped || step == "1"):
			parts[i] = from + "-6,0"
		}
	}
	return strings.Join(append(slices.Clone(fields[:len(fields)-1]), strings.Join(parts, ",")), " ")
}
