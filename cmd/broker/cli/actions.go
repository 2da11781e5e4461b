package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"broker/operate/service"
)

// pollOperation is the interval at which the progress of an operation is read.
const pollOperation = 200 * time.Millisecond

// action is a change to many jobs, with its name in the API and in texts.
type action struct{ name, use, short, verb, done string }

func actionCommands() []*cobra.Command {
	move := actionCommand(action{"move", "move [ID...] --to QUEUE", "move jobs to another queue", "move", "moved"})
	return []*cobra.Command{
		actionCommand(action{
			"retry", "retry [ID...]", "run dead, retrying or scheduled jobs now", "retry", "put back",
		}),
		actionCommand(action{"kill", "kill [ID...]", "move jobs to the dead set", "kill", "killed"}),
		actionCommand(action{
			"cancel", "cancel [ID...]", "cancel jobs, and ask the workers of those that run to stop", "cancel",
			"cancelled, or asked to stop",
		}),
		actionCommand(action{
			"rerun", "rerun [ID...]", "submit copies of jobs that have ended and are kept", "run again",
			"submitted again",
		}),
		actionCommand(action{"delete", "rm [ID...]", "remove jobs", "remove", "removed"}),
		move,
	}
}

func actionCommand(a action) *cobra.Command {
	name, _, _ := strings.Cut(a.use, " ")
	cmd := &cobra.Command{
		Use:   a.use,
		Short: a.short,
		Long: strings.ToUpper(a.short[:1]) + a.short[1:] +
			": those with the ids given, or those that the flags choose. A change by flags first\n" +
			"says how many jobs it would be and asks, unless --yes is given.",
		Example: "  broker " + name + " 0198c5a2-7d1e-7adc-8000-4f1e2d3c4b5a\n  broker " + name +
			" --queue emails --state dead",
	}
	conn, out, f := addConnection(cmd), addFormat(cmd), addFilter(cmd)
	yes := cmd.Flags().BoolP("yes", "y", false, "do not ask")
	dry := cmd.Flags().Bool("dry-run", false, "only show the number of jobs")
	to := new(string)
	if a.name == "move" {
		to = cmd.Flags().String("to", "", "the `QUEUE` to move to")
		_ = cmd.MarkFlagRequired("to") // exists
	}
	now := new(bool)
	if a.name == "cancel" {
		now = cmd.Flags().Bool("now", false, "also remove running jobs: the reports of their workers are refused")
		cmd.Long += "\nA job that runs ends as cancelled once its worker has stopped, unless the worker completes it."
	}
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		request, err := actionRequest(a, f, args)
		if err != nil {
			return err
		}
		if *to != "" {
			request["queue"] = *to
		}
		if a.name == "cancel" && !*now {
			request["running"] = "signal"
		}
		return c.act(cmd, a, request, actOptions{yes: *yes || len(args) > 0, dry: *dry, out: *out})
	})
	return cmd
}

// actionRequest names the jobs by id or by filter; without either, nothing is changed.
func actionRequest(a action, f *filter, ids []string) (map[string]any, error) {
	query, err := f.query()
	if err != nil {
		return nil, err
	}
	switch {
	case len(ids) > 0 && len(query) > 0:
		return nil, UsageError(errors.New("expected ids or a filter, not both"))
	case len(ids) > 0:
		return map[string]any{"action": a.name, "ids": ids}, nil
	case len(query) == 0:
		return nil, UsageError(errors.New("expected ids or a filter, such as --queue or --state"))
	}
	return map[string]any{"action": a.name, "filter": filterObject(query)}, nil
}

type actOptions struct {
	yes, dry bool
	out      format
}

// act shows the number of jobs, asks for confirmation, and waits for the operation to end.
func (c *client) act(cmd *cobra.Command, a action, request map[string]any, o actOptions) error {
	if o.dry || !o.yes {
		request["dry_run"] = true
		var plan service.Preview
		raw, err := c.call(cmd.Context(), http.MethodPost, "job-actions", nil, request, &plan)
		if err != nil {
			return err
		}
		if o.dry && o.out == formatJSON {
			return printJSON(cmd.OutOrStdout(), raw)
		}
		Say(cmd.ErrOrStderr(), "%s to %s\n", plural(plan.Matched, "job"), a.verb)
		for _, j := range plan.Examples {
			Say(cmd.ErrOrStderr(), "  %s  %s  %s\n", j.ID, j.State, oneLine(j.Queue, 60))
		}
		if o.dry || plan.Matched == 0 {
			return nil
		}
		if err := confirm(cmd, "go on?"); err != nil {
			return err
		}
		delete(request, "dry_run")
	}
	var op service.Operation
	raw, err := c.call(cmd.Context(), http.MethodPost, "job-actions", nil, request, &op)
	if err != nil {
		return err
	}
	if raw, err = c.follow(cmd, &op, raw); err != nil {
		return err
	}
	if o.out == formatJSON {
		return printJSON(cmd.OutOrStdout(), raw)
	}
	lines := append([]string{plural(op.Changed, "job") + " " + a.done}, op.Created...)
	if op.Changed > len(op.Created) && len(op.Created) > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", op.Changed-len(op.Created)))
	}
	err = printLine(cmd, "%s", strings.Join(lines, "\n"))
	if op.UndoUntil != nil {
		Say(cmd.ErrOrStderr(), "to put them back: broker undo %s\n", op.ID)
	}
	if err == nil && op.Skipped > 0 {
		return &ExitError{Code: ExitConflict, Err: fmt.Errorf("%s could not be changed: %s", plural(op.Skipped, "job"),
			cmp.Or(op.Error, "the action does not apply in the present state"))}
	}
	return err
}

// follow shows the progress of an operation until it has ended. An interrupt cancels it.
func (c *client) follow(cmd *cobra.Command, op *service.Operation, raw []byte) ([]byte, error) {
	bar := NewBar(cmd, int64(op.Matched), BarJobs)
	for op.State == "running" || op.State == "pending" {
		_ = bar.Set(op.Changed + op.Skipped) // only shows
		pause(cmd.Context(), pollOperation)
		path := "operations/" + url.PathEscape(op.ID)
		if cause := cmd.Context().Err(); cause != nil {
			// the cause is what matters
			_, _ = c.call(context.WithoutCancel(cmd.Context()), http.MethodDelete, path, nil, nil, nil)
			return nil, Failed(fmt.Errorf("interrupted after %s: %w", plural(op.Changed, "job"), cause))
		}
		var err error
		if raw, err = c.call(cmd.Context(), http.MethodGet, path, nil, nil, op); err != nil {
			return nil, err
		}
	}
	_ = bar.Finish() // only shows
	if op.State != "done" {
		return nil,
			Failed(fmt.Errorf("operation %s: %s after %s %s", op.ID, op.State, plural(op.Changed, "job"), op.Error))
	}
	return raw, nil
}

// confirm asks a question. Without a terminal, the answer is no.
func confirm(cmd *cobra.Command, question string) error {
	Say(cmd.ErrOrStderr(), "%s [y/N] ", question)
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	if err != nil {
		return UsageError(errors.New("nothing was changed: give --yes where nobody can be asked"))
	}
	return Failed(errors.New("nothing was changed"))
}
