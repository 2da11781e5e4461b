package httpapi

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"broker/operate/service"
)

// TestFiltersOfTheAPIHaveTheFieldsOfTheTable compares both forms of a filter with the table that console and CLI use.
func TestFiltersOfTheAPIHaveTheFieldsOfTheTable(t *testing.T) {
	t.Parallel()
	want := []string{"q"}
	for _, f := range service.FilterFields {
		want = append(want, f.Name)
	}
	slices.Sort(want)
	for tag, form := range map[string]reflect.Type{"query": reflect.TypeFor[FilterQuery](), "json": reflect.TypeFor[jobFilter]()} {
		var have []string
		for i := range form.NumField() {
			name, _, _ := strings.Cut(form.Field(i).Tag.Get(tag), ",")
			have = append(have, name)
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%s: fields %v, want %v", tag, have, want)
		}
	}
}

func TestASearchChoosesJobsOverTheAPI(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "mail", "args": []string{"invoice 4711"}})
	f.push(map[string]any{"queue": "mail"})
	f.push(map[string]any{"queue": "other", "args": []string{"invoice 4711"}})
	if jobs := f.call("GET", "/api/v1/jobs?q=queue:mail+invoice", nil).want(200)["jobs"].([]any); len(jobs) != 1 {
		t.Errorf("%d jobs, want 1", len(jobs))
	}
	body := `{"action":"delete","filter":{"q":"queue:mail invoice"},"dry_run":true}`
	if n := f.call("POST", "/api/v1/job-actions", body).want(200)["matched"]; n != float64(1) {
		t.Errorf("%v jobs would be deleted, want 1", n)
	}
	f.call("GET", "/api/v1/jobs?q=colour:red", nil).problem(422, "invalid_request")
	f.call("GET", "/api/v1/jobs?q=error:a&error_class=b", nil).problem(422, "invalid_request")
}
