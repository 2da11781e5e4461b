package service

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"broker/core"
)

func TestASearchIsAFilter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for search, want := range map[string]string{
		"":                                      "",
		`queue:mail error:Timeout died:1h`:      "queue=mail error_class=Timeout died_from=2026-01-31T11:00:00Z",
		`invoice 4711`:                          "anywhere=invoice 4711",
		`text:4711 body:"a: b" tag:a tag:"b c"`: "tag=a,b c text=4711 body_text=a: b",
		`"with: colon"`:                         "anywhere=with: colon",
		`state:dead,retrying state:ready`:       "state=dead,retrying,ready",
		`due:1h`:                                "due_to=2026-01-31T13:00:00Z",
		`created:2d..1d`:                        "created_from=2026-01-29T12:00:00Z created_to=2026-01-30T12:00:00Z",
		`created:2026-01-01..`:                  "created_from=2026-01-01T00:00:00Z",
		`finished:..2026-01-01T10:00`:           "finished_to=2026-01-01T10:00:00Z",
		`min_priority:3 error:none`:             "error_class=none min_priority=3",
	} {
		var f JobFilter
		if err := f.Search(search, now); err != nil || f.String() != want {
			t.Errorf("%s: %s, %v, want %s", search, f.String(), err, want)
		}
	}
	for search, want := range map[string]string{
		"colour:red": `"colour" is not one of`, "queue:": "queue: needs a value", "died:soon": "is not a time",
		"error:a error:b": "may be given once",
		"min_priority:x":  "is not a number",
	} {
		var f JobFilter
		if err := f.Search(search, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", search, err, want)
		}
	}
	f := JobFilter{ErrorClass: "a"}
	if err := f.Search("error:b", now); err == nil {
		t.Error("a condition is given twice")
	}
}

// TestEveryFilterFieldCanBeSet sets each field of a filter through the table.
func TestEveryFilterFieldCanBeSet(t *testing.T) {
	t.Parallel()
	var f JobFilter
	for i := range FilterFields {
		field := &FilterFields[i]
		value := "x"
		switch {
		case field.IsTime():
			value = "2026-01-31"
		case field.IsNumber():
			value = "1"
		case field.IsFlag():
			value = "true"
		}
		if err := field.Set(&f, []string{value}, time.Time{}); err != nil {
			t.Errorf("%s: %v", field.Name, err)
		}
		if got := field.values(&f); len(got) != 1 || !strings.HasPrefix(got[0], value) {
			t.Errorf("%s: %v, want %s", field.Name, got, value)
		}
		if field.Label == "" || field.Doc == "" {
			t.Errorf("%s has no label or no text", field.Name)
		}
	}
	v := reflect.ValueOf(f)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("no field of the table sets %s", v.Type().Field(i).Name)
		}
	}
}

func TestASearchFindsTextInBodiesToo(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	client := e.Open(core.ClientOptions{Protocol: core.HTTP, Wake: func() {}})
	defer e.Close(client)
	for _, body := range []string{`["Invoice 4711"]`, `["other"]`} {
		e.Do(client, []core.Op{&core.Submit{Job: &core.Job{Queue: "q", Body: []byte(body)}}}, nil)
	}
	e.Do(client, []core.Op{&core.Submit{Job: &core.Job{Queue: "q", Tags: []string{"invoice 4711"}}}}, nil)
	var f JobFilter
	if err := f.Search("invoice 4711", s.Now().Time()); err != nil {
		t.Fatal(err)
	}
	list, err := s.Jobs(t.Context(), everyone, f, JobPage{Limit: 10})
	if err != nil || len(list.Jobs) != 2 {
		t.Errorf("%d jobs found, %v, want 2", len(list.Jobs), err)
	}
}
