package cli

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Completion must not make a shell wait. These limit the time for the broker's answer, and the number of names.
const (
	completionTimeout = time.Second
	completionLimit   = "100"
)

// names is a list of the API that completes words.
type names struct {
	list   string // resource and name of the rows
	field  string // field of a row
	search string // parameter for the beginning of the word; empty: the list is short
}

// The names that commands take.
var (
	queueNames    = names{"queues", "name", "search"}
	jobNames      = names{"jobs", "id", "id_prefix"}
	workerNames   = names{"workers", "id", ""}
	scheduleNames = names{"schedules", "name", ""}
	batchNames    = names{"batches", "id", ""}
)

// completions are the kinds of arguments of each command, by its path below "broker".
var completions = map[string]names{
	"queues": queueNames, "pause": queueNames, "resume": queueNames, "push": queueNames, "run": queueNames,
	"work":   queueNames,
	"limits": queueNames, "limits set": queueNames, "limits rm": queueNames,
	"policies": queueNames, "policies set": queueNames, "policies rm": queueNames,
	"job": jobNames, "retry": jobNames, "kill": jobNames, "rm": jobNames, "move": jobNames, "jobs log": jobNames,
	"cancel": jobNames, "rerun": jobNames, "workflow": jobNames,
	"workers quiet": workerNames, "workers terminate": workerNames, "workers disconnect": workerNames,
	"schedules pause": scheduleNames, "schedules resume": scheduleNames, "schedules run": scheduleNames,
	"schedules rm": scheduleNames,
	"batches":      batchNames,
}

// addCompletions adds completion of names to a command and its subcommands.
func addCompletions(cmd *cobra.Command, above string) {
	name := strings.TrimSpace(above + " " + cmd.Name())
	if n, ok := completions[name]; ok && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = n.complete
	}
	for _, flag := range []string{"queue", "to"} {
		if f := cmd.Flags().Lookup(flag); f != nil && strings.Contains(f.Usage, "`QUEUE`") {
			_ = cmd.RegisterFlagCompletionFunc(flag, queueNames.complete) // exists
		}
	}
	if cmd.Flags().Lookup("context") != nil {
		_ = cmd.RegisterFlagCompletionFunc("context", completeContexts) // exists
	}
	for _, sub := range cmd.Commands() {
		addCompletions(sub, name)
	}
}

// complete asks the broker for the names that begin with word. On an error it returns no names, because a shell shows
// no errors.
func (n names) complete(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	if slices.Contains([]string{"push", "run", "limits set", "limits rm", "policies set", "policies rm"},
		strings.TrimPrefix(cmd.CommandPath(), "broker ")) && len(args) > 0 {
		return nil, nothing // only their first argument is a queue
	}
	text := func(flag string) string {
		value, _ := cmd.Flags().GetString(flag) // each command that has completions has them
		return value
	}
	c, err := (&connection{server: text("server"), token: text("token"), context: text("context")}).open()
	if err != nil {
		return nil, nothing
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	query := url.Values{"limit": {completionLimit}}
	if n.search != "" && word != "" {
		query.Set(n.search, word)
	}
	var answer map[string]json.RawMessage
	var rows []map[string]any
	if _, err := c.call(ctx, http.MethodGet, n.list, query, nil, &answer); err != nil ||
		json.Unmarshal(answer[n.list], &rows) != nil {
		return nil, nothing
	}
	var found []string
	for _, row := range rows {
		if name, _ := row[n.field].(string); strings.HasPrefix(name, word) {
			found = append(found, name)
		}
	}
	return found, nothing
}

// completeContexts completes the names of contexts.
func completeContexts(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	c, err := readContexts()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found := slices.DeleteFunc(slices.Sorted(maps.Keys(c.Contexts)),
		func(name string) bool { return !strings.HasPrefix(name, word) })
	return found, cobra.ShellCompDirectiveNoFileComp
}
