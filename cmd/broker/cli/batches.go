package cli

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"broker/operate/service"
)

func batchesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "batches [ID]",
		Short: "list batches, or show one with the batches below it",
		Long:  "List the batches, the newest first. With an ID, show that batch and the batches below it.",
		Args:  cobra.MaximumNArgs(1),
	}
	conn, out := addConnection(cmd), addFormat(cmd)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		if len(args) == 1 {
			return c.showBatch(cmd, args[0], *out)
		}
		return printList(cmd, c, listing{"batches", url.Values{}, 0, *out, batchHeader},
			func(b *service.Batch) []string { return batchRow(b, "") })
	})
	return cmd
}

// showBatch prints a batch and the batches below it.
func (c *client) showBatch(cmd *cobra.Command, id string, out format) error {
	var b service.BatchTree
	raw, err := c.call(cmd.Context(), http.MethodGet, "batches/"+url.PathEscape(id), nil, nil, &b)
	if err != nil {
		return err
	}
	if out == formatJSON {
		return printJSON(cmd.OutOrStdout(), raw)
	}
	t := &table{header: batchHeader}
	t.addBatch(&b, "")
	return t.print(cmd.OutOrStdout())
}

var batchHeader = []string{"ID", "STATE", "-DONE", "-JOBS", "-FAILED", "CREATED", "DESCRIPTION"}

func batchRow(b *service.Batch, indent string) []string {
	return []string{
		indent + b.ID, b.State, count(b.Done), count(b.Total), count(b.Failed), local(b.CreatedAt),
		oneLine(b.Description, 60),
	}
}

// addBatch adds a batch and, indented, its children.
func (t *table) addBatch(b *service.BatchTree, indent string) {
	t.add(batchRow(&b.Batch, indent)...)
	for i := range b.Batches {
		t.addBatch(&b.Batches[i], indent+"  ")
	}
}
