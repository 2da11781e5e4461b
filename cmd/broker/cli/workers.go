package cli

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"broker/operate/service"
)

// doing is the worker's state, if it has one.
func doing(w *service.Worker) string {
	switch {
	case w.State != "":
		return w.State
	case w.Push != nil && w.Push.PausedUntil != nil:
		return "paused"
	case len(w.Held) > 0:
		return "working"
	case w.Waiting:
		return "waiting"
	}
	return ""
}

func workersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "list workers and connections of all protocols",
		Args:  noArgs,
	}
	conn, out := addConnection(cmd), addFormat(cmd)
	protocol := cmd.Flags().String("protocol", "", "only workers of this protocol, such as workq")
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, _ []string) error {
		query := url.Values{}
		if *protocol != "" {
			query.Set("protocol", *protocol)
		}
		header := []string{"ID", "NAME", "PROTOCOL", "ADDRESS", "STATE", "SINCE", "-HOLDS", "QUEUES"}
		return printList(cmd, c, listing{"workers", query, 0, *out, header}, func(w *service.Worker) []string {
			return []string{
				w.ID, oneLine(w.Name, 40), w.Protocol, oneLine(w.Address, 40), doing(w), local(w.ConnectedAt),
				strconv.Itoa(len(w.Held)),
				oneLine(strings.Join(w.Queues, " "), 60),
			}
		})
	})
	cmd.AddCommand(
		workerActionCommand("quiet", "take no more jobs (Faktory workers)", "takes no more jobs"),
		workerActionCommand("terminate", "finish what they have and end (Faktory workers)", "is told to end"),
		workerActionCommand("disconnect", "lose their connection", "is disconnected"),
	)
	return cmd
}

// workerActionCommand sends a command to workers. done is the message for each.
func workerActionCommand(name, about, done string) *cobra.Command {
	return eachChange{name + " ID...", "make workers " + about, "", done, func(id string) (string, string) {
		if name == "disconnect" {
			return http.MethodDelete, "workers/" + id
		}
		return http.MethodPost, "workers/" + id + "/" + name
	}}.command()
}
