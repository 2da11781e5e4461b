package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"broker/core/schema"
)

// given are the texts of flags, by the names of their settings; those of flags that are not given are absent.
type given map[string]string

// flagValue is the flag of a setting.
type flagValue struct {
	given given
	row   *schema.Row
}

// String implements pflag.Value.
func (v flagValue) String() string { return "" }

// Type implements pflag.Value; it stands for the value in the help.
func (v flagValue) Type() string {
	return map[schema.Unit]string{
		schema.Count: "N", schema.Seconds: "SPAN", schema.Rate: "RATE", schema.Word: "WORD", schema.Waits: "WAITS",
		schema.Ending: "WHAT",
	}[v.row.Unit]
}

// Set implements pflag.Value.
func (v flagValue) Set(text string) error {
	v.given[v.row.Name] = text
	_, err := v.row.Value(text)
	return err
}

// addRows adds a flag for each setting.
func addRows(flags *pflag.FlagSet, rows []schema.Row) given {
	g := given{}
	for i := range rows {
		r := &rows[i]
		flags.Var(flagValue{g, r}, r.Flag(), r.FlagHelp())
	}
	return g
}

// members are the settings that the flags set, for the API.
func members(rows []schema.Row, g given) (map[string]any, error) {
	set := make(map[string]any, len(g))
	for i := range rows {
		r := &rows[i]
		text, there := g[r.Name]
		if !there {
			continue
		}
		value, err := r.Value(text)
		if _, detail, ok := schema.FieldOf(err); ok {
			return nil, UsageError(fmt.Errorf("--%s: %s", r.Flag(), detail))
		}
		set[r.Name] = value
	}
	return set, nil
}

// memberOf is the setting that a flag's name or its own name means.
func memberOf(rows []schema.Row, name string) string {
	for i := range rows {
		if rows[i].Flag() == strings.ReplaceAll(name, "_", "-") {
			return rows[i].Name
		}
	}
	return name
}
