package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"broker/core/schema"
	"broker/operate/service"
)

// appliesTo describes the jobs that a limit applies to.
func appliesTo(l *service.Limit) string {
	switch {
	case l.Scope == sharedScope:
		var parts []string
		if len(l.Queues) > 0 {
			parts = append(parts, "queues "+strings.Join(l.Queues, " "))
		}
		if len(l.Types) > 0 {
			parts = append(parts, "types "+strings.Join(l.Types, " "))
		}
		return oneLine(strings.Join(parts, ", "), 60)
	case l.Scope == "queue":
		return "the queue"
	case l.Name == "":
		return "each " + l.Scope
	}
	return l.Scope + " " + oneLine(l.Name, 40)
}

func limitsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limits [QUEUE]",
		Short: "list the limits of queues and change them",
		Long: "List the limits of concurrent leases and of leases per second. With QUEUE also show which jobs count\n" +
			"against its limits, and what the jobs of each key do. Limits of the settings file can only be changed there.",
		Example: "  broker limits\n  broker limits set mail --concurrency 4 --rate 10\n  broker limits set mail --scope key --concurrency 1",
		Args:    cobra.MaximumNArgs(1),
	}
	conn, out := addConnection(cmd), addFormat(cmd)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		query := url.Values{}
		if len(args) == 1 {
			query.Set("queue", args[0])
		}
		var answer struct{ Limits []service.Limit }
		raw, err := c.call(cmd.Context(), http.MethodGet, "limits", query, nil, &answer)
		if err != nil {
			return err
		}
		if *out == formatJSON {
			return printJSON(cmd.OutOrStdout(), raw)
		}
		if err := limitTable(answer.Limits).print(cmd.OutOrStdout()); err != nil || len(args) == 0 {
			return err
		}
		if err := slotTable(answer.Limits).print(cmd.OutOrStdout()); err != nil {
			return err
		}
		var of struct{ Keys []service.QueueKey }
		_, err = c.call(cmd.Context(), http.MethodGet, "queues/"+url.PathEscape(args[0])+"/keys", nil, nil, &of)
		if err != nil || len(of.Keys) == 0 {
			return err
		}
		return keyTable(of.Keys).print(cmd.OutOrStdout())
	})
	cmd.AddCommand(setLimitCommand(), removeLimitCommand(), shareCommand())
	return cmd
}

func limitTable(limits []service.Limit) *table {
	t := &table{header: []string{"QUEUE", "FOR", "LIMIT", "FROM"}}
	for i := range limits {
		l := &limits[i]
		t.add(oneLine(cmp.Or(l.Queue, l.Name), 40), appliesTo(l), l.Throttle.String(),
			mark(l.FromConfig, "settings file"))
	}
	return t
}

// slotTable lists the jobs that count against limits.
func slotTable(limits []service.Limit) *table {
	t := &table{header: []string{"FOR", "NAME", "TAKEN", "WAITING", "JOB", "WORKER", "SINCE"}}
	for i := range limits {
		l := &limits[i]
		for _, use := range l.Uses {
			head := []string{
				appliesTo(l), oneLine(use.Name, 40), strconv.FormatUint(uint64(use.Taken), 10), strconv.Itoa(use.Ready),
			}
			if len(use.Slots) == 0 {
				t.add(append(head, "", "", "")...)
			}
			for _, slot := range use.Slots {
				t.add(append(head, slot.Job, oneLine(slot.Worker, 40), local(slot.LeasedAt))...)
				head = []string{"", "", "", ""}
			}
		}
	}
	return t
}

// keyTable lists the keys of a queue.
func keyTable(keys []service.QueueKey) *table {
	t := &table{header: []string{"KEY", "-READY", "-RUNNING", "-STARTS/S", "-OLDEST", "LIMIT"}}
	for _, k := range keys {
		limit := ""
		if k.Limit != nil {
			limit = k.Limit.String()
		}
		t.add(oneLine(cmp.Or(k.Name, "none"), 40), count(k.Ready), count(k.Leased),
			strconv.FormatFloat(k.Rate, 'f', 1, 64), span(time.Duration(k.OldestS*float64(time.Second))), limit)
	}
	return t
}

// sharedScope is the scope of a limit for several queues and types, whose name stands in place of QUEUE.
const sharedScope = "shared"

// addScope adds the flags that select a limit.
func addScope(flags *pflag.FlagSet) (scope, name *string) {
	return flags.String("scope", "queue", "what is limited: `queue`, type, key, or shared: several queues and types"),
		flags.String("name", "", "type or key; without it, the limit is for `each`")
}

func setLimitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "set QUEUE", Short: "set a limit of a queue, or of several queues and types, or replace it",
		Args: cobra.ExactArgs(1),
		Long: "Set a limit of QUEUE. With --queues or --types its scope is shared: QUEUE is the name of one limit for all jobs of these queues\n" +
			"together, and for all jobs of these types in any queue.",
		Example: "  broker limits set partner-api --queues sync,export --types Refund --concurrency 3\n  broker limits set mail --concurrency 4\n  broker limits set api --rate 10 --burst 20\n  broker limits set mail --scope type --name Newsletter --concurrency 1",
	}
	conn, flags := addConnection(cmd), cmd.Flags()
	scope, name := addScope(flags)
	given := addRows(flags, schema.ThrottleRows)
	queues := flags.StringSlice("queues", nil, "`QUEUES` that share the limit, separated by commas")
	types := flags.StringSlice("types", nil, "`TYPES` that share the limit, in any queue")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(given) == 0 {
			return UsageError(
				errors.New("expected --concurrency, --per-worker or --rate; broker limits rm removes a limit"),
			)
		}
		change, err := members(schema.ThrottleRows, given)
		if err != nil {
			return err
		}
		switch lists := len(*queues)+len(*types) > 0; {
		case lists && (*name != "" || *scope != "queue" && *scope != sharedScope):
			return UsageError(errors.New("a limit with --queues or --types has the scope shared and takes no --name"))
		case lists:
			change["name"], change["queues"], change["types"] = args[0], *queues, *types
		case *scope == sharedScope:
			return UsageError(errors.New("a limit with the scope shared needs --queues or --types"))
		default:
			change["queue"], change["scope"], change["name"] = args[0], *scope, *name
		}
		c, err := conn.open()
		if err != nil {
			return err
		}
		if _, err = c.call(cmd.Context(), http.MethodPut, "limits", nil, change, nil); err != nil {
			return err
		}
		return printLine(cmd, "%s is limited", args[0])
	}
	return cmd
}

func removeLimitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rm QUEUE", Short: "remove a limit of a queue, or of several queues and types", Args: cobra.ExactArgs(1),
		Long:    "Remove a limit of QUEUE. With --scope shared, QUEUE is the name of a limit for several queues and types.",
		Example: "  broker limits rm mail --scope type --name Newsletter\n  broker limits rm partner-api --scope shared",
	}
	conn := addConnection(cmd)
	scope, name := addScope(cmd.Flags())
	shared := cmd.Flags().Bool(sharedScope, false, "as --scope shared")
	_ = cmd.Flags().MarkHidden(sharedScope) // the form of earlier versions
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		query := url.Values{"queue": args, "scope": {*scope}}
		if *name != "" {
			query.Set("name", *name)
		}
		if *shared || *scope == sharedScope {
			query = url.Values{"name": args, "scope": {sharedScope}}
		}
		if _, err := c.call(cmd.Context(), http.MethodDelete, "limits", query, nil, nil); err != nil {
			return err
		}
		return printLine(cmd, "the limit of %s is removed", args[0])
	})
	return cmd
}

func shareCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "share QUEUE", Short: "set how the keys of a queue share its workers", Args: cobra.ExactArgs(1),
		Long: "Set how the keys of a queue's jobs share its workers. With fair, the keys take turns. With ordered, a job is handed out when all\n" +
			"earlier jobs of its key have ended, or together with them. With none, keys are for limits only.",
		Example: "  broker limits share orders --key-tag customer --mode ordered\n  broker limits share mail --key-tag tenant --mode fair --weight acme=3\n  broker limits share mail --mode none",
	}
	conn, flags := addConnection(cmd), cmd.Flags()
	mode := flags.String("mode", "fair", "`fair`, ordered or none")
	keyTag := flags.String("key-tag", "",
		"`tag` that has the key: with customer, the job tagged customer:7 has the key 7")
	keyUnique := flags.Bool("key-unique", false, "the key is the unique key up to the first colon")
	weights := flags.StringToInt("weight", nil, "turns of a key, such as `acme=3`; others have one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *mode != "none" && *keyTag == "" && !*keyUnique {
			return UsageError(errors.New("expected --key-tag or --key-unique"))
		}
		c, err := conn.open()
		if err != nil {
			return err
		}
		sharing := map[string]any{"mode": *mode, "key_tag": *keyTag, "key_unique": *keyUnique, "weights": *weights}
		if _, err = c.call(cmd.Context(), http.MethodPatch, "queues/"+url.PathEscape(args[0]), nil,
			map[string]any{"sharing": sharing}, nil); err != nil {
			return err
		}
		done := map[string]string{
			"fair": "the keys of %s take turns\n", "ordered": "the jobs of each key of %s go in order\n",
			"none": "the keys of %s do not share its workers\n",
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), done[*mode], args[0])
		return Failed(err)
	}
	return cmd
}
