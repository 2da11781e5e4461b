package cli

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"broker/operate/service"
)

// clusterCommand shows and changes a cluster.
func clusterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "show and change a cluster",
		Long: "Show and change a cluster, through any of its nodes.\n\n" +
			"  broker cluster status\n" +
			"  broker cluster add n4=10.0.0.4:7431      then start n4 with --join\n" +
			"  broker cluster remove n2\n" +
			"  broker cluster transfer n3               hand the lead to n3",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		listCommand(&cobra.Command{
			Use: "status", Short: "list the nodes",
			Long: "List the nodes of a cluster: their roles, their position in the log, whether they have the index of all jobs in memory and serve\n" +
				"at once as a leader, by how much their clocks differ from the cluster's time, how many copies of the store they got until they had\n" +
				"followed for an hour, how long a write of the log took in the last second, when they last answered the asked node, and\n" +
				"whether their disk is nearly full or slow, or their clients have no link to the leader.",
		}, "cluster", "nodes", []string{
			"NODE", "ROLE", "ADDRESS", "APPLIED", "LAG", "WARM", "CLOCK", "COPIES", "DISK", "LAST CONTACT", "VERSION",
			"PROBLEMS",
		}, clusterRow),
		clusterChange("add ID=HOST:PORT", "let a node join",
			"Make a node a member, without a vote until it has caught up. Then start it with --node, --cluster (all members, itself\n"+
				"included) and --join. Nodes get their votes in pairs, so that the number of voters stays odd.",
			"cluster/add", "the node is a member; it votes once it has caught up",
			func(arg string) (map[string]string, error) {
				id, address, ok := strings.Cut(arg, "=")
				if !ok {
					return nil, UsageError(fmt.Errorf("%q is not ID=HOST:PORT", arg))
				}
				return map[string]string{"id": id, "address": address}, nil
			}),
		clusterChange("remove ID", "remove a node",
			"Take a node out of the cluster. If it leads, it first hands the lead over.",
			"cluster/remove", "the node is removed", byID),
		clusterChange("transfer [ID]", "hand the lead over",
			"Hand the lead to a node; without ID to any. Clients of the old leader, and those of Qless and Conveyor at any node, are disconnected\n"+
				"and connect again.",
			transferPath, "the lead is handed over", byID),
	)
	return cmd
}

// transferPath is the request of broker cluster transfer.
const transferPath = "cluster/transfer"

func byID(arg string) (map[string]string, error) { return map[string]string{"id": arg}, nil }

// clusterChange is a command that sends one request.
func clusterChange(
	use, short, long, path, done string, body func(arg string) (map[string]string, error),
) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.ExactArgs(1)}
	if strings.Contains(use, "[") {
		cmd.Args = cobra.MaximumNArgs(1)
	}
	conn := addConnection(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in, err := body(strings.Join(args, ""))
		if err != nil {
			return err
		}
		c, err := conn.open()
		if err != nil {
			return err
		}
		var before service.ClusterOverview
		if path == transferPath {
			if _, err = c.call(cmd.Context(), http.MethodGet, "cluster", nil, nil, &before); err != nil {
				return err
			}
		}
		if _, err = c.call(cmd.Context(), http.MethodPost, path, nil, in, nil); err != nil {
			return err
		}
		if leads := in["id"]; leads != "" && leads == before.Leader {
			return printLine(cmd, "%s leads already", leads)
		}
		return printLine(cmd, "%s", done)
	}
	return cmd
}

// clusterRow is a line of broker cluster status.
func clusterRow(n *service.ClusterNode) []string {
	warm, clock := "no", clockText(n.ClockSkew)
	switch {
	case !n.Answers():
		warm, clock = "-", "-"
	case n.Warm:
		warm = "yes"
	}
	contact := strconv.FormatFloat(n.LastContact, 'f', 1, 64) + "s"
	return []string{
		n.ID, n.Role, n.Address, fmt.Sprint(n.Applied), fmt.Sprint(n.Lag), warm, clock,
		fmt.Sprint(n.Copies), diskText(n), contact, n.Version, cmp.Or(strings.Join(n.Problems(), ", "), "-"),
	}
}

// diskText shows how long a write of the log takes.
func diskText(n *service.ClusterNode) string {
	took := "-"
	if n.WriteTime > 0 {
		took = strconv.FormatFloat(n.WriteTime*1000, 'f', 1, 64) + "ms"
	}
	if n.DiskSlow {
		return "slow, " + took
	}
	return took
}

// clockText shows by how many seconds a clock differs.
func clockText(skew float64) string {
	d := time.Duration(skew * float64(time.Second)).Round(100 * time.Millisecond)
	switch {
	case d > shownSkew:
		return "+" + d.String()
	case d < -shownSkew:
		return d.String()
	}
	return "ok"
}

// shownSkew is the largest difference of a clock that is fine.
const shownSkew = 2 * time.Second
