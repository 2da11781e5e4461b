package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"broker/operate/service"
)

func workflowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workflow ID",
		Short: "show a job or a batch with all jobs below it",
		Long: "Show a job or a batch with all jobs below it: children, members, callbacks, and jobs that still wait for one of these. " +
			"broker cancel and broker retry change all of them with --workflow.",
		Example: "  broker workflow 0198c5a2-7d1e-7adc-8000-4f1e2d3c4b5a\n  broker retry --workflow b-8bfgPnlSYtkH --state dead\n  broker cancel --workflow b-8bfgPnlSYtkH",
		Args:    cobra.ExactArgs(1),
	}
	conn, out := addConnection(cmd), addFormat(cmd)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		var w service.Workflow
		raw, err := c.call(cmd.Context(), http.MethodGet, "workflows/"+url.PathEscape(args[0]), nil, nil, &w)
		if err != nil {
			return err
		}
		if *out == formatJSON {
			return printJSON(cmd.OutOrStdout(), raw)
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), summaryOf(&w)); err != nil || len(w.Jobs) == 0 {
			return Failed(err)
		}
		t := &table{header: []string{"ID", "STATE", "QUEUE", "TYPE", "NOTE"}}
		for i := range w.Jobs {
			j := &w.Jobs[i]
			t.add(strings.Repeat("  ", j.Depth)+j.ID, j.State, oneLine(j.Queue, 40), typeBeside(&j.Job),
				oneLine(noteOf(&j.Job), 60))
		}
		return t.print(cmd.OutOrStdout())
	})
	return cmd
}

// summaryOf is the progress of a workflow.
func summaryOf(w *service.Workflow) string {
	var parts []string
	for state, n := range w.States {
		if n > 0 {
			parts = append(parts, fmt.Sprint(n, " ", state))
		}
	}
	slices.Sort(parts)
	text := plural(w.Total, "job")
	switch {
	case w.Total == 0:
		return "no job is left: all are done"
	case w.Truncated:
		text = "more than " + text
	}
	return text + ": " + strings.Join(parts, ", ")
}
