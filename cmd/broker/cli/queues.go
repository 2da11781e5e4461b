package cli

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"broker/operate/service"
)

func queuesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "queues [TEXT]",
		Short:   "list queues",
		Long:    "List the queues, or those with TEXT in their name.",
		Example: "  broker queues\n  broker queues email --sort -ready -o json\n  broker queues --only stuck",
		Args:    cobra.MaximumNArgs(1),
	}
	conn, out := addConnection(cmd), addFormat(cmd)
	limit := cmd.Flags().Int("limit", 100, "show at most this many; 0 shows all")
	sort := cmd.Flags().String("sort", "",
		"`ORDER`: name, ready, scheduled, leased, retrying, blocked, done, dead or latency; with a minus in front the largest first")
	only := cmd.Flags().String("only", "",
		"queues in a `CONDITION`: paused, unserved (no worker), limited, or stuck (jobs wait for over a minute, and none runs)")
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		query := url.Values{}
		if *only != "" {
			query.Set("only", *only)
		}
		if len(args) > 0 {
			query.Set("search", args[0])
		}
		if *sort != "" {
			query.Set("sort", *sort)
		}
		header := []string{"QUEUE", "-READY", "-LEASED", "-RETRYING", "-SCHEDULED", "-DEAD", "-WORKERS", "STATE"}
		return printList(cmd, c, listing{"queues", query, *limit, *out, header}, func(q *service.Queue) []string {
			return []string{
				oneLine(q.Name, 60), count(q.Ready), count(q.Leased), count(q.Retrying), count(q.Scheduled),
				count(q.Dead),
				count(q.Workers), mark(q.Paused, "paused"),
			}
		})
	})
	return cmd
}

// pauseCommand is pause or resume.
func pauseCommand(name string, paused bool) *cobra.Command {
	about, done := "hand out the jobs of paused queues again", "resumed"
	if paused {
		about, done = "stop handing out the jobs of queues", "paused"
	}
	cmd := &cobra.Command{
		Use: name + " QUEUE...", Short: about, Args: cobra.MinimumNArgs(1),
		Example: "  broker " + name + " emails reports",
	}
	conn, out := addConnection(cmd), addFormat(cmd)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		for _, name := range args {
			raw, err := c.call(cmd.Context(), http.MethodPatch, "queues/"+url.PathEscape(name), nil,
				map[string]any{"paused": paused}, nil)
			if err != nil {
				return fmt.Errorf("queue %s: %w", name, err)
			}
			if err := printAnswer(cmd, *out, raw, "%s %s", name, done); err != nil {
				return err
			}
		}
		return nil
	})
	return cmd
}
