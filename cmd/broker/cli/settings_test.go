package cli

import (
	"reflect"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"broker/core/schema"
)

// TestFlagsAreTheSettings compares the flags of the commands that set policies and limits with the settings.
func TestFlagsAreTheSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command *cobra.Command
		rows    []schema.Row
	}{
		"policies": {setPolicyCommand(), schema.PolicyRows}, "limits": {setLimitCommand(), schema.ThrottleRows},
	} {
		want, got := map[string]string{}, map[string]string{}
		for i := range c.rows {
			want[c.rows[i].Flag()] = c.rows[i].FlagHelp()
		}
		c.command.Flags().VisitAll(func(f *pflag.Flag) {
			if _, is := f.Value.(flagValue); is {
				got[f.Name] = f.Usage
				if f.Value.Type() == "" {
					t.Errorf("%s: the help of --%s does not say what it takes", name, f.Name)
				}
			}
		})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s has the flags %v, want %v", name, got, want)
		}
	}
}
