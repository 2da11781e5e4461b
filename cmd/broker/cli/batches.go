package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

type batch struct {
	ID          string     `json:"id"`
	Parent      string     `json:"parent"`
	Description string     `json:"description"`
	State       string     `json:"state"`
	CreatedAt   *time.Time `json:"created_at"`
	Total       int        `json:"total"`
	Done        int        `json:"done"`
	Failed      int        `json:"failed"`
	Batches     []batch    `json:"batches"` // its children, where one batch is shown
}

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
		list, _, err := c.list(cmd, "batches", url.Values{}, 0)
		if err != nil {
			return err
		}
		if *out == formatJSON {
			return PrintValue(cmd, map[string]any{"batches": list})
		}
		t := batchTable()
		for _, raw := range list {
			var b batch
			if err := json.Unmarshal(raw, &b); err != nil {
				return Failed(fmt.Errorf("unexpected answer: %w", err))
			}
			t.addBatch(&b, "")
		}
		return t.print(cmd.OutOrStdout())
	})
	return cmd
}

// showBatch prints a batch and the batches below it.
func (c *client) showBatch(cmd *cobra.Command, id string, out format) error {
	var b batch
	raw, err := c.call(cmd.Context(), http.MethodGet, "batches/"+url.PathEscape(id), nil, nil, &b)
	if err != nil {
		return err
	}
	if out == formatJSON {
		return printJSON(cmd.OutOrStdout(), raw)
	}
	t := batchTable()
	t.addBatch(&b, "")
	return t.print(cmd.OutOrStdout())
}

func batchTable() *table {
	return &table{header: []string{"ID", "STATE", "-DONE", "-JOBS", "-FAILED", "CREATED", "DESCRIPTION"}}
}

// addBatch adds a batch and, indented, its children.
func (t *table) addBatch(b *batch, indent string) {
	t.add(indent+b.ID, b.State, count(b.Done), count(b.Total), count(b.Failed), local(b.CreatedAt), oneLine(b.Description, 60))
	for i := range b.Batches {
		t.addBatch(&b.Batches[i], indent+"  ")
	}
}
