package cli

import (
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"broker/operate/service"
)

func markCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mark TEXT...",
		Short: "mark a moment, such as a deploy, in charts and lists of errors",
		Long: "Mark this moment, such as a deploy. Charts show the mark, and the list of errors says which are new since then. The last 200 marks\n" +
			"are kept. `broker marks` lists them.",
		Example: "  broker mark billing 4.2 --version 4.2",
		Args:    cobra.MinimumNArgs(1),
	}
	conn, out := addConnection(cmd), addFormat(cmd)
	version := cmd.Flags().String("version", "", "`VERSION` of the workers' program from now on")
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		body, mark := map[string]any{"text": strings.Join(args, " ")}, service.Mark{}
		if *version != "" {
			body["version"] = *version
		}
		raw, err := c.call(cmd.Context(), http.MethodPost, "marks", nil, body, &mark)
		if err != nil {
			return err
		}
		return printAnswer(cmd, *out, raw, "%s", mark.ID)
	})
	return cmd
}

func marksCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "marks", Short: "list marks, the latest first"}
	header := []string{"ID", "WHEN", "WHO", "VERSION", "TEXT"}
	cmd = listCommand(cmd, "marks", "marks", header, func(m *service.Mark) []string {
		return []string{m.ID, local(&m.At), oneLine(m.Who, 30), m.Version, oneLine(m.Text, 80)}
	})
	cmd.AddCommand(eachChange{"remove ID...", "remove marks", "", "removed", func(id string) (string, string) {
		return http.MethodDelete, "marks/" + id
	}}.command())
	return cmd
}
