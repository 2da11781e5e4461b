package httpapi

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/operate/service"
)

// TestQueryHasTheFieldsOfTheTable compares the query struct, which needs a field for each condition, with the table.
func TestQueryHasTheFieldsOfTheTable(t *testing.T) {
	t.Parallel()
	want := []string{"q"}
	for _, f := range service.FilterFields {
		want = append(want, f.Name)
	}
	form := reflect.TypeFor[FilterQuery]()
	var have []string
	for i := range form.NumField() {
		name, _, _ := strings.Cut(form.Field(i).Tag.Get("query"), ",")
		have = append(have, name)
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(have, want) {
		t.Errorf("fields %v, want %v", have, want)
	}
}

// TestQueryAndBodyMeanTheSameFilter sets every field in both ways.
func TestQueryAndBodyMeanTheSameFilter(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for _, f := range service.FilterFields {
		var query FilterQuery
		text := `"ready"`
		var value reflect.Value
		switch {
		case f.Many():
			value = reflect.ValueOf([]string{"ready"})
		case f.IsFlag():
			value, text = reflect.ValueOf(true), "true"
		case f.IsTime():
			at := now.Add(-time.Hour)
			value, text = reflect.ValueOf(at), strconv.Quote(at.Format(time.RFC3339))
		case f.IsNumber():
			value, text = reflect.ValueOf("-3"), "-3"
		default:
			value = reflect.ValueOf("ready")
		}
		form := reflect.ValueOf(&query).Elem()
		for i := range form.NumField() {
			if name, _, _ := strings.Cut(form.Type().Field(i).Tag.Get("query"), ","); name == f.Name {
				form.Field(i).Set(value)
			}
		}
		var body jobFilter
		if err := json.Unmarshal([]byte(`{"`+f.Name+`":`+text+`}`), &body); err != nil {
			t.Fatal(err)
		}
		of, err := query.filter(now)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		in, err := body.filter(now)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if said := of.String(); !strings.HasPrefix(said, f.Name+"=") || in.String() != said {
			t.Errorf("%s: the query means %q, the body %q", f.Name, said, in.String())
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

// TestActionsRefuseEmptyConditions: an empty condition would select jobs with any value.
func TestActionsRefuseEmptyConditions(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "mail"})
	for _, condition := range []string{
		`"queue":[]`, `"state":[]`, `"queue":["mail"],"tag":[]`, `"unique_key":""`, `"queue":"mail","id_prefix":""`,
		`"q":""`, `"created_to":""`,
	} {
		f.call("POST", "/api/v1/job-actions", `{"action":"delete","filter":{`+condition+`}}`).problem(422,
			"invalid_request")
	}
	name := f.call("POST", "/api/v1/job-actions",
		`{"action":"delete","dry_run":true,"filter":{"queue":""}}`).want(200) // a name that is empty
	if name["matched"] != float64(0) {
		t.Errorf("%v jobs of the queue without a name", name["matched"])
	}
	if jobs := f.call("GET", "/api/v1/jobs?queue=mail&tag=&unique_key=",
		nil).want(200)["jobs"].([]any); len(jobs) != 1 {
		t.Errorf("%d jobs in the list, want 1", len(jobs))
	}
}

// TestUniqueKeysOfEveryProtocolAreFound: the store marks keys of Gearman and Workq clients.
func TestUniqueKeysOfEveryProtocolAreFound(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "http", "unique_key": "order-7"})
	for queue, key := range map[string]string{
		"gearman": core.GearmanKey + "order-7", "workq": core.WorkqKey + "order-7",
		"other": core.GearmanKey + "order-8",
	} {
		f.engine.Do(f.client,
			[]core.Op{&core.Submit{Job: &core.Job{Queue: queue, Unique: core.UniqueRefuse, UniqueKey: key}}}, nil)
	}
	found := f.call("GET", "/api/v1/jobs?unique_key=order-7", nil).want(200)["jobs"].([]any)
	if len(found) != 3 {
		t.Errorf("%d jobs, want those of three protocols: %v", len(found), found)
	}
	if exact := f.call("GET", "/api/v1/jobs?unique_key=%02uorder-7", nil).want(200)["jobs"].([]any); len(exact) != 1 {
		t.Errorf("%d jobs by the key in the store, want 1", len(exact))
	}
}
