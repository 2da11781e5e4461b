package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"broker/operate/service"
)

func jobsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "jobs [SEARCH]",
		Short: "list jobs",
		Long: "List the jobs that match the flags and the search; without any, all jobs. A search has conditions such as queue:mail, error:Timeout, " +
			"died:1h, created:2d..1d, and text, which is also looked for in bodies. Times are local.",
		Example: "  broker jobs queue:emails died:1h\n  broker jobs --queue emails --state dead --limit 20\n  broker jobs --state retrying --error-class Timeout -o json\n" +
			"  broker jobs --tag customer:42 --sort -created",
	}
	conn, out, f := addConnection(cmd), addFormat(cmd), addFilter(cmd)
	cmd.AddCommand(jobLogCommand())
	limit := cmd.Flags().Int("limit", 50, "show at most this many; 0 shows all")
	sort := cmd.Flags().String("sort", "",
		"`ORDER`: queue, due, created, died or finished; with a minus in front in reverse")
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, words []string) error {
		f.search(words)
		query, err := f.query()
		if err != nil {
			return err
		}
		if *sort != "" {
			query.Set("sort", *sort)
		}
		header := []string{"ID", "STATE", "QUEUE", "TYPE", "-PRIO", "-TRIES", "WHEN", "NOTE"}
		return printList(cmd, c, listing{"jobs", query, *limit, *out, header}, func(j *service.Job) []string {
			return []string{
				j.ID, j.State, oneLine(j.Queue, 40), typeBeside(j), fmt.Sprint(j.Priority), fmt.Sprint(j.Attempts),
				whenOf(j, time.Now()), oneLine(noteOf(j), 60),
			}
		})
	})
	return cmd
}

// pageLimit is the number of jobs in one request.
const pageLimit = 500

// list reads pages of the resource name until it has limit items (zero: all). more reports whether there are more. The
// items are in a field with the name of the resource.
func (c *client) list(
	cmd *cobra.Command, name string, query url.Values, limit int,
) (list []json.RawMessage, more bool, err error) {
	list = []json.RawMessage{}
	for {
		ask := pageLimit
		if limit > 0 {
			ask = min(ask, limit-len(list))
		}
		query.Set("limit", strconv.Itoa(ask))
		var fields map[string]json.RawMessage
		raw, err := c.call(cmd.Context(), http.MethodGet, name, query, nil, &fields)
		if err != nil {
			return nil, false, err
		}
		var items []json.RawMessage
		var page struct{ Cursor string }
		if err := errors.Join(json.Unmarshal(fields[name], &items), json.Unmarshal(raw, &page)); err != nil {
			return nil, false, Failed(fmt.Errorf("unexpected answer: %w", err))
		}
		list = append(list, items...)
		if page.Cursor == "" {
			return list, false, nil
		}
		if limit > 0 && len(list) >= limit {
			return list, true, nil
		}
		query.Set("cursor", page.Cursor)
	}
}

// listing is a list of the API to print. name is its resource.
type listing struct {
	name   string
	query  url.Values
	limit  int // zero: all
	out    format
	header []string
}

// printList prints a list of the API as rows of a table.
func printList[T any](cmd *cobra.Command, c *client, l listing, row func(*T) []string) error {
	list, more, err := c.list(cmd, l.name, l.query, l.limit)
	if err != nil {
		return err
	}
	if l.out == formatJSON {
		return PrintValue(cmd, map[string]any{l.name: list})
	}
	t := table{header: l.header}
	for _, raw := range list {
		one := new(T)
		if err := json.Unmarshal(raw, one); err != nil {
			return Failed(fmt.Errorf("unexpected answer: %w", err))
		}
		t.add(row(one)...)
	}
	if err := t.print(cmd.OutOrStdout()); err != nil {
		return err
	}
	if more {
		_, err := fmt.Fprintln(cmd.ErrOrStderr(), "there are more; see --limit")
		return Failed(err)
	}
	return nil
}

// typeBeside is the type of a job, in a row that also shows its queue.
func typeBeside(j *service.Job) string {
	if j.Type == j.Queue {
		return ""
	}
	return oneLine(j.Type, 30)
}

// whenOf returns the most useful time of a job for a reader.
func whenOf(j *service.Job, now time.Time) string {
	ago := func(what string, t *time.Time) string {
		if t == nil {
			return ""
		}
		if t.After(now) {
			return "in " + span(t.Sub(now))
		}
		return strings.TrimSpace(what + " " + span(now.Sub(*t)) + " ago")
	}
	switch j.State {
	case "leased":
		return ago("since", j.LeasedAt)
	case "scheduled", "retrying":
		return ago("due", cmp.Or(j.ReadyAt, j.RunAt))
	}
	return ago("", cmp.Or(j.ReadyAt, j.CreatedAt))
}

// noteOf is the most useful fact about a job besides its state.
func noteOf(j *service.Job) string {
	switch {
	case j.CancelAt != nil:
		return "asked to stop, worker " + j.Worker
	case j.State == "leased" && j.Worker != "":
		return "worker " + j.Worker
	case j.Failure != nil:
		return strings.TrimPrefix(j.Failure.Type+": "+j.Failure.Message, ": ")
	case len(j.Tags) > 0:
		return strings.Join(j.Tags, ", ")
	}
	return ""
}
