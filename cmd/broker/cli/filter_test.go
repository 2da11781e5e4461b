package cli

import (
	"encoding/json"
	"testing"

	"github.com/spf13/cobra"

	"broker/operate/service"
)

func TestEveryFieldOfAFilterHasAFlag(t *testing.T) {
	t.Parallel()
	cmd := &cobra.Command{}
	addFilter(cmd)
	for i := range service.FilterFields {
		field := &service.FilterFields[i]
		flag := cmd.Flags().Lookup(filterFlag(field))
		if flag == nil || flag.Usage == "" {
			t.Errorf("%s has no flag with a help", field.Name)
		}
	}
}

func TestFilterOfAnActionHasTheTypesOfTheAPI(t *testing.T) {
	t.Parallel()
	cmd := &cobra.Command{}
	f := addFilter(cmd)
	if err := cmd.ParseFlags([]string{"--queue=a", "--to-stop", "--min-priority=-3", "--unique=k"}); err != nil {
		t.Fatal(err)
	}
	q, err := f.query()
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(filterObject(q))
	want := `{"cancel_requested":true,"min_priority":-3,"queue":["a"],"unique_key":"k"}`
	if err != nil || string(got) != want {
		t.Errorf("the filter is %s, %v, want %s", got, err, want)
	}
}

func TestFilterIsSentAsGiven(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"nothing", nil, ""},
		{"several queues", []string{"--queue", "a,b", "--queue", "c"}, "queue=a%2Cb&queue=c"},
		{"a queue without a name", []string{"--queue", ""}, "queue="},
		{"states with commas", []string{"--state", "dead,ready"}, "state=dead&state=ready"},
		{"to stop", []string{"--to-stop"}, "cancel_requested=true"},
		{"a moment", []string{"--created-before", "2030-01-31T14:05:00Z"}, "created_to=2030-01-31T14%3A05%3A00Z"},
		{"a death", []string{"--died-after", "2030-01-31T14:05:00Z"}, "died_from=2030-01-31T14%3A05%3A00Z"},
		{"a search of both", []string{"--search", "queue:a", "died:1h"}, "q=queue%3Aa+died%3A1h"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cmd := &cobra.Command{}
			f := addFilter(cmd)
			if err := cmd.ParseFlags(test.args); err != nil {
				t.Fatal(err)
			}
			f.search(cmd.Flags().Args())
			q, err := f.query()
			if err != nil || q.Encode() != test.want {
				t.Errorf("the query is %q, %v, want %q", q.Encode(), err, test.want)
			}
		})
	}
}

// TestEmptyFilterFlagsAreRefused: an unset variable of a shell must not widen the choice of jobs.
func TestEmptyFilterFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--state=", "--unique=", "--workflow=", "--search=", "--created-before="} {
		cmd := &cobra.Command{}
		f := addFilter(cmd)
		if err := cmd.ParseFlags([]string{"--queue=a", flag}); err != nil {
			t.Fatal(err)
		}
		if q, err := f.query(); Code(err) != ExitUsage {
			t.Errorf("%s: the query is %q, %v", flag, q.Encode(), err)
		}
	}
}
