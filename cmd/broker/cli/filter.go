package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"broker/operate/service"
)

// searchField is the search, a parameter of the API beside the fields of its filter. Other words of the command line
// are added to it.
const searchField = "q"

// filterFlag returns the name of the flag of a field.
func filterFlag(f *service.FilterField) string {
	return cmp.Or(f.Flag, strings.ReplaceAll(f.Name, "_", "-"))
}

// filter holds the filter flags of a command.
type filter struct {
	flags *pflag.FlagSet
	words string // words of a search, in addition to the flags
}

func addFilter(cmd *cobra.Command) *filter {
	flags := cmd.Flags()
	for i := range service.FilterFields {
		f := &service.FilterFields[i]
		name := filterFlag(f)
		about := f.Doc
		if !f.IsTime() && !f.IsFlag() { // the value is called as in the description
			about = strings.Replace(about, "this "+name, "this `"+strings.ToUpper(name)+"`", 1)
		}
		switch {
		case f.Many() && f.Choices != nil: // words, also with commas between
			flags.StringSlice(name, nil, about+": "+strings.Join(f.Choices, ", "))
		case f.Many():
			flags.StringArray(name, nil, about+"; may be given several times")
		case f.IsFlag():
			flags.Bool(name, false, about)
		case f.IsTime() && f.Ahead:
			flags.String(name, "", about+"; a `TIME`, or 1h: in an hour")
		case f.IsTime():
			flags.String(name, "", about+"; a `TIME`, or 1h: an hour ago")
		default:
			flags.String(name, "", about)
		}
	}
	flags.String("search", "", "that match a `SEARCH`, such as 'queue:mail error:Timeout died:1h invoice'")
	_ = cmd.RegisterFlagCompletionFunc("state",
		cobra.FixedCompletions(service.FieldNamed("state").Choices, cobra.ShellCompDirectiveNoFileComp))
	return &filter{flags: flags}
}

// search adds words to the search.
func (f *filter) search(words []string) { f.words = strings.Join(words, " ") }

// query is the filter as parameters of the API.
func (f *filter) query() (url.Values, error) {
	q := url.Values{}
	for i := range service.FilterFields {
		field := &service.FilterFields[i]
		values, err := f.values(field)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			q.Add(field.Name, v)
		}
	}
	given, err := f.given("search")
	if text := strings.TrimSpace(strings.Join(append(given, f.words), " ")); text != "" {
		q.Set(searchField, text)
	}
	return q, err
}

// given returns the values of a flag. A flag with an empty value is an error, as with an unset variable of a shell:
// without the condition, the command would choose more jobs. Only names may be empty.
func (f *filter) given(flag string) ([]string, error) {
	given := f.flags.Lookup(flag)
	if !given.Changed {
		return nil, nil
	}
	values := []string{given.Value.String()}
	list, isList := given.Value.(pflag.SliceValue)
	if isList {
		values = list.GetSlice()
	}
	if len(values) == 0 || !isList && values[0] == "" {
		return nil, UsageError(fmt.Errorf("--%s is empty", flag))
	}
	return values, nil
}

// values returns the values of a field in the form of the API.
func (f *filter) values(field *service.FilterField) ([]string, error) {
	values, err := f.given(filterFlag(field))
	switch {
	case err != nil || len(values) == 0 || field.IsFlag() && values[0] == "false":
		return nil, err
	case !field.IsTime():
		return values, nil
	}
	sign := time.Duration(-1)
	if field.Ahead {
		sign = 1
	}
	at, err := parseTime(values[0], time.Now(), sign)
	return []string{at.UTC().Format(time.RFC3339Nano)}, err
}

// filterObject is the query as a JSON object. A member that may occur several times is a list.
func filterObject(query url.Values) map[string]any {
	object := make(map[string]any, len(query))
	for name, values := range query {
		switch field := service.FieldNamed(name); {
		case field != nil && field.Many():
			object[name] = values
		case field != nil && field.IsFlag():
			object[name] = true
		case field != nil && field.IsNumber():
			object[name] = json.Number(values[0])
		default:
			object[name] = values[0]
		}
	}
	return object
}
