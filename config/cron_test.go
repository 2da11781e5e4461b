package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestCronEntriesBecomeJobs(t *testing.T) {
	t.Parallel()
	file := write(t, "broker.toml", `
[[cron]]
schedule = "*/5 * * * *"
  [cron.job]
    type = "FiveJob"
    queue = "critical"
    retry = 3
    reserve_for = 600
    args = [1, "a<b", {deep = [true, 9007199254740993]}]
  [cron.job.custom]
    expires_in = 60
[[cron]]
name = "report"
schedule = "@hourly"
missed = "all"
backlog = 2
  [cron.job]
    type = "HourlyReport"
[[cron]]
schedule = "@every 90s"
  [cron.job]
    type = "Tables"
    [[cron.job.args]]
      key = "one"
`)
	c, err := Load(Sources{File: file})
	if err != nil {
		t.Fatal(err)
	}
	number := func(n int64) *int64 { return &n }
	for i, want := range []CronJob{
		{
			Type: "FiveJob", Queue: "critical", Args: []byte(`[1,"a<b",{"deep":[true,9007199254740993]}]`),
			Custom: []byte(`{"expires_in":60}`), Retry: number(3), ReserveFor: number(600),
		},
		{Type: "HourlyReport", Args: []byte("[]")},
		{Type: "Tables", Args: []byte(`[{"key":"one"}]`)},
	} {
		if got := c.Crons[i].Job; !reflect.DeepEqual(got, want) {
			t.Errorf("entry %d:\n got %+v\nwant %+v", i, got, want)
		}
	}
	if c.Crons[2].Schedule != "@every 90s" {
		t.Errorf("entries: %+v", c.Crons)
	}
	if e := c.Crons[1]; e.Name != "report" || e.Missed != "all" || e.Backlog != 2 {
		t.Errorf("entry: %+v", e)
	}
}

func TestProblemsInCronEntriesAreReported(t *testing.T) {
	t.Parallel()
	file := write(t, "broker.toml", `
[[cron]]
schedule = "61 * * * *"
color = "red"
  [cron.job]
    type = 5
    retry = "many"
    args = "no list"
    at = "tomorrow"
    custom = [1]
[[cron]]
  [cron.job]
    type = "T"
    reserve_for = 86401
[[cron]]
name = "twice"
schedule = "* * * * *"
[[cron]]
name = "twice"
schedule = "* * * * *"
missed = "some"
backlog = -1
`)
	_, err := Load(Sources{File: file})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`cron[0].schedule: "61 * * * *": end of range (61) above maximum (59): 61`,
		"cron[0].color: unknown setting", "cron[0].job.at: unknown setting",
		"cron[0].job.type: 5 is not a string", "cron[0].job.type: missing",
		"cron[0].job.retry: many is not a whole number", "cron[0].job.args: not a list",
		"cron[0].job.custom: not a table", "cron[1].schedule: \"\": is empty",
		"cron[1].job.reserve_for: 86401 is not between 0 and 86400", "cron[2].job: the table [cron.job] is missing",
		`cron[3].name: "twice" is the name of another entry`, `cron[3].missed: "some" is not skip, one or all`,
		"cron[3].backlog: -1 is not between 0 and 1000000",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no line %q in\n%v", want, err)
		}
	}
	if _, err := Load(Sources{File: write(t, "broker.toml", "[cron]\nschedule = \"* * * * *\"\n")}); err == nil ||
		!strings.Contains(err.Error(), "must be written as [[cron]]") {
		t.Errorf("a table in place of a list: %v", err)
	}
}
