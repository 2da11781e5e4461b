package cli

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// filterFlag is a flag that selects jobs.
type filterFlag struct {
	name  string
	field string // field of the API's filter
	about string
	kind  filterKind
}

// filterKind is the kind of values that a flag takes.
type filterKind int

const (
	oneText filterKind = iota
	manyTexts
	commaTexts // several, also with commas between
	past       // a time, or a duration before now
	future     // a time, or a duration from now
	yes        // no value
)

// searchField is the search. Other words of the command line are added to it.
const searchField = "q"

// filterFlags are all filter flags, in the order of the help. A test compares their fields with those of the API.
var filterFlags = []filterFlag{
	{"queue", "queue", "in this `QUEUE`; may be given several times", manyTexts},
	{"state", "state", "ready, scheduled, blocked, leased, retrying, done or dead", commaTexts},
	{"type", "type", "of this `TYPE`", manyTexts},
	{"tag", "tag", "with this `TAG`; with all of them if given several times", manyTexts},
	{"origin", "origin", "submitted by this `PROTOCOL`", oneText},
	{"worker", "worker", "leased to this `WORKER`", oneText},
	{"failed-by", "failed_by", "whose last failure this `WORKER` reported", oneText},
	{"error-class", "error_class", "whose last failure has this `CLASS`; none: no class", oneText},
	{"worker-version", "worker_version", "last leased by a worker of this `VERSION`; none: of no version", oneText},
	{"failure-group", "failure_group", "whose last failure is in this `GROUP`; none: no group", oneText},
	{"batch", "batch", "of this `BATCH`", oneText},
	{"workflow", "workflow", "in the workflow `ID`: this job or batch, and all jobs below", oneText},
	{"operation", "operation", "that this `OPERATION` has changed, such as op-7, within an hour", oneText},
	{"unique", "unique_key", "with this unique `KEY`", oneText},
	{"id-prefix", "id_prefix", "whose id starts with `TEXT`", oneText},
	{"text", "text", "with this `TEXT` in the id, the type, a tag or the last error", oneText},
	{"search", searchField, "that match a `SEARCH`, such as 'queue:mail error:Timeout died:1h invoice'", oneText},
	{"created-after", "created_from", "created at this `TIME` or later; 1h: an hour ago", past},
	{"created-before", "created_to", "created before this `TIME`", past},
	{"due-after", "due_from", "due at this `TIME` or later", future},
	{"due-before", "due_to", "due before this `TIME`", future},
	{"to-stop", "cancel_requested", "that are running, and whose workers should stop", yes},
}

// filter holds the filter flags of a command.
type filter struct {
	flags *pflag.FlagSet
	words string // words of a search, in addition to the flags
}

func addFilter(cmd *cobra.Command) *filter {
	flags := cmd.Flags()
	for _, f := range filterFlags {
		switch f.kind {
		case manyTexts:
			flags.StringArray(f.name, nil, f.about)
		case commaTexts:
			flags.StringSlice(f.name, nil, f.about)
		case yes:
			flags.Bool(f.name, false, f.about)
		case oneText, past, future:
			flags.String(f.name, "", f.about)
		}
	}
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(
		[]string{"ready", "scheduled", "blocked", "leased", "retrying", "done", "dead"},
		cobra.ShellCompDirectiveNoFileComp))
	return &filter{flags: flags}
}

// search adds words to the search.
func (f *filter) search(words []string) { f.words = strings.Join(words, " ") }

// query is the filter as parameters of the API.
func (f *filter) query() (url.Values, error) {
	q := url.Values{}
	for _, flag := range filterFlags {
		values, err := f.values(&flag)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			q.Add(flag.field, v)
		}
	}
	return q, nil
}

// values returns the values of a flag in the form of the API. A flag with an empty value is an error, as with an unset
// variable of a shell: without the condition, the command would choose more jobs. Only names may be empty.
func (f *filter) values(flag *filterFlag) ([]string, error) {
	given := f.flags.Lookup(flag.name)
	text := given.Value.String()
	if list, isList := given.Value.(pflag.SliceValue); isList {
		values := list.GetSlice()
		if given.Changed && len(values) == 0 {
			return nil, UsageError(fmt.Errorf("--%s is empty", flag.name))
		}
		return values, nil
	}
	if given.Changed && text == "" {
		return nil, UsageError(fmt.Errorf("--%s is empty", flag.name))
	}
	if flag.field == searchField {
		text = strings.TrimSpace(text + " " + f.words)
	}
	if text == "" || flag.kind == yes && text == "false" {
		return nil, nil
	}
	if flag.kind != past && flag.kind != future {
		return []string{text}, nil
	}
	sign := time.Duration(1)
	if flag.kind == past {
		sign = -1
	}
	at, err := parseTime(text, time.Now(), sign)
	return []string{at.UTC().Format(time.RFC3339Nano)}, err
}

// filterObject is the query as a JSON object. A member that may occur several times is a list.
func filterObject(query url.Values) map[string]any {
	object := make(map[string]any, len(query))
	for _, flag := range filterFlags {
		values := query[flag.field]
		switch {
		case len(values) == 0:
		case flag.kind == manyTexts || flag.kind == commaTexts:
			object[flag.field] = values
		case flag.kind == yes:
			object[flag.field] = true
		default:
			object[flag.field] = values[0]
		}
	}
	return object
}
