package crontab

import (
	"testing"
	"time"
)

func TestSchedules(t *testing.T) {
	t.Parallel()
	for _, e := range []struct{ text, after, next string }{
		{"*/5 * * * *", "2030-01-01T00:00:00Z", "2030-01-01T00:05:00Z"},
		{"*/5 * * * *", "2030-01-01T00:04:59.999999Z", "2030-01-01T00:05:00Z"},
		{"* * * * *", "2030-01-01T00:00:59Z", "2030-01-01T00:01:00Z"},
		{" 30 6 * * mon-fri ", "2030-01-04T06:30:00Z", "2030-01-07T06:30:00Z"},
		{"0 0 13 * 5", "2030-01-05T00:00:00Z", "2030-01-11T00:00:00Z"}, // either field matches
		{"0 0 * * 7", "2030-01-01T00:00:00Z", "2030-01-06T00:00:00Z"},
		{"0 0 * * 5-7", "2030-01-05T12:00:00Z", "2030-01-06T00:00:00Z"},
		{"0 0 * * 1,7", "2030-01-01T12:00:00Z", "2030-01-06T00:00:00Z"},
		{"*/10 * * * * *", "2030-01-01T00:00:00Z", "2030-01-01T00:00:10Z"},
		{"0 0 29 2 *", "2029-01-01T00:00:00Z", "2032-02-29T00:00:00Z"},
		{"@hourly", "2030-01-01T00:00:00Z", "2030-01-01T01:00:00Z"},
		{"@weekly", "2030-01-01T00:00:00Z", "2030-01-06T00:00:00Z"},
		{"@midnight", "2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"},
		{"@monthly", "2030-01-01T00:00:00Z", "2030-02-01T00:00:00Z"},
		{"@yearly", "2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z"},
		{"@annually", "2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z"},
		{"0 12 24-26/2 DEC *", "2030-12-24T12:00:00Z", "2030-12-26T12:00:00Z"},
		{"@every 90s", "2030-01-01T00:00:00Z", "2030-01-01T00:01:30Z"},
		{"@every 90s", "2030-01-01T00:01:29.5Z", "2030-01-01T00:01:30Z"},
		{"CRON_TZ=Asia/Tokyo 0 9 * * *", "2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"},
		{"TZ=Asia/Tokyo @daily", "2030-01-01T00:00:00Z", "2030-01-01T15:00:00Z"},
	} {
		s, err := Parse(e.text, time.UTC)
		if err != nil {
			t.Errorf("%q: %v", e.text, err)
			continue
		}
		after, err := time.Parse(time.RFC3339, e.after)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Next(after).UTC().Format(time.RFC3339Nano); got != e.next {
			t.Errorf("%q after %s: %s, not %s", e.text, e.after, got, e.next)
		}
	}
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse("0 9 * * *", tokyo)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Next(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)).UTC(); got.Hour() != 0 || got.Day() != 2 {
		t.Errorf("nine in Tokyo is %v", got)
	}
}

// In Vienna clocks go from 02:00 to 03:00 on 31 March 2030, and from 03:00 back to 02:00 on 27 October.
func TestDaylightSavingSkipsAndRepeatsHours(t *testing.T) {
	t.Parallel()
	for _, e := range []struct {
		text, after string
		next        []string
	}{
		{"Europe/Vienna 30 2 * * *", "2030-03-30T00:00:00Z", []string{"2030-03-30T01:30:00Z", "2030-04-01T00:30:00Z"}},
		{
			"Europe/Vienna 30 2 * * *", "2030-10-26T12:00:00Z",
			[]string{"2030-10-27T00:30:00Z", "2030-10-27T01:30:00Z", "2030-10-28T01:30:00Z"},
		},
		{"Europe/Vienna 30 6 * * *", "2030-03-30T12:00:00Z", []string{"2030-03-31T04:30:00Z", "2030-04-01T04:30:00Z"}},
		{"Europe/Vienna 0 * * * *", "2030-03-31T00:00:00Z", []string{"2030-03-31T01:00:00Z", "2030-03-31T02:00:00Z"}},
		{"Europe/Vienna @daily", "2030-10-26T12:00:00Z", []string{"2030-10-26T22:00:00Z", "2030-10-27T23:00:00Z"}},
		{"Europe/Vienna @every 1h", "2030-10-27T00:00:00Z", []string{"2030-10-27T01:00:00Z", "2030-10-27T02:00:00Z"}},
		{"UTC 30 2 * * *", "2030-03-30T12:00:00Z", []string{"2030-03-31T02:30:00Z", "2030-04-01T02:30:00Z"}},
		{"UTC\t30 1 * * *", "2030-10-26T12:00:00Z", []string{"2030-10-27T01:30:00Z"}},
		{"UTC 30 1 * * *", "2030-10-26T12:00:00Z", []string{"2030-10-27T01:30:00Z", "2030-10-28T01:30:00Z"}},
	} {
		s, err := Parse("CRON_TZ="+e.text, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, e.after)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range e.next {
			at = s.Next(at)
			if got := at.UTC().Format(time.RFC3339); got != want {
				t.Errorf("%q: %s, not %s", e.text, got, want)
			}
		}
	}
}

func TestInvalidSchedulesAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "* * * *", "* * * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8",
		"*/0 * * * *", "5-1 * * * *", "a * * * *", "0 0 30 2 *", ", * * * *", "@sometimes", "@every", "@every 0s",
		"@every -5s", "@every 1.5s", "@every soon", "CRON_TZ=", "TZ=", "CRON_TZ=Mars/Olympus * * * * *",
		"CRON_TZ=UTC", "CRON_TZ=UTC TZ=", "TZ=UTC CRON_TZ=", "TZ=UTC TZ=UTC * * * * *", "-1 * * * *",
		"1-2-3 * * * *", "1/2/3 * * * *", "@",
	} {
		if s, err := Parse(text, time.UTC); err == nil {
			t.Errorf("%q was taken: next is %v", text, s.Next(time.Unix(0, 0)))
		}
	}
}

// The library would search for seconds to minutes.
func TestFieldWithoutValuesIsRefusedWithoutSearching(t *testing.T) {
	t.Parallel()
	for _, text := range []string{", * * * * *", "* , * * *", "* * , * * *", "* * * * ,"} {
		if _, err := Parse(text, time.UTC); err == nil || err.Error() != "a field has no value" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"*/5 * * * *", "@every 1h", "CRON_TZ=UTC 0 0 * * 5-7", "TZ=", "TZ=UTC TZ=", "0 0 30 2 *", "@hourly",
		", * * 2 * 2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text, time.UTC)
		if err != nil {
			return
		}
		from := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		if next := s.Next(from); !next.After(from) {
			t.Fatalf("%q: %v does not come after %v", text, next, from)
		}
	})
}

func TestStepsLongerThanTheirFieldAreRefused(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{
		"*/90 * * * *": true, "TZ=UTC 0 */25 * * *": true, "0,*/61 * * * *": true, "*/90 * * * * *": true,
		"0 0 1-31/40 * *": true, "*/60 * * * *": false, "*/59 * * * *": false, "0 0 * * 1-5": false,
		"@daily": false, "@every 90m": false, "": false,
	} {
		if err := CheckSteps(text); (err != nil) != refused {
			t.Errorf("%q: %v", text, err)
		}
	}
}
