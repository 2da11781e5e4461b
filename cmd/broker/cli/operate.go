package cli

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"broker/operate/service"
)

// listCommand prints a list of the API. rows is the name of the rows in the answer.
func listCommand[T any](cmd *cobra.Command, path, rows string, header []string, row func(*T) []string) *cobra.Command {
	cmd.Args = noArgs
	conn, out := addConnection(cmd), addFormat(cmd)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, _ []string) error {
		var answer map[string]json.RawMessage
		raw, err := c.call(cmd.Context(), http.MethodGet, path, nil, nil, &answer)
		if err != nil {
			return err
		}
		if *out == formatJSON {
			return printJSON(cmd.OutOrStdout(), raw)
		}
		var list []T
		if err := json.Unmarshal(answer[rows], &list); err != nil {
			return Failed(fmt.Errorf("unexpected answer: %w", err))
		}
		t := table{header: header}
		for i := range list {
			t.add(row(&list[i])...)
		}
		return t.print(cmd.OutOrStdout())
	})
	return cmd
}

// eachChange is a command that makes the same change for each of its arguments.
type eachChange struct {
	use, short string
	of         string // the word for an argument in errors, with a space; may be empty
	done       string // the message for each, after the argument
	request    func(arg string) (method, path string)
}

func (e eachChange) command() *cobra.Command {
	cmd := &cobra.Command{Use: e.use, Short: e.short, Args: cobra.MinimumNArgs(1)}
	conn := addConnection(cmd)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		for _, arg := range args {
			method, path := e.request(url.PathEscape(arg))
			if _, err := c.call(cmd.Context(), method, path, nil, nil, nil); err != nil {
				return fmt.Errorf("%s%s: %w", e.of, arg, err)
			}
			if err := printLine(cmd, "%s %s", arg, e.done); err != nil {
				return err
			}
		}
		return nil
	})
	return cmd
}

func settingsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "settings",
		Short: "show the settings of a running broker",
		Long: "Show the current settings of a running broker and the source of each. Secrets are hidden. In a cluster, these are the settings\n" +
			"of the leader, whichever node is asked: its name is in cluster.node.",
	}
	return listCommand(cmd, "settings", "settings", []string{"SETTING", "VALUE", "FROM"},
		func(s *service.Setting) []string {
			return []string{s.Name, oneLine(s.Value, 80), s.Source}
		})
}

func reloadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "reload the settings of the broker",
		Long: "Reload the settings of the broker, like SIGHUP. The log lists the changed settings. If a changed setting needs a restart, the reload is refused and nothing changes.\n" +
			"In a cluster, only the leader reloads its settings, whichever node is asked. Send the others SIGHUP.",
		Args: noArgs,
	}
	conn := addConnection(cmd)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, _ []string) error {
		if _, err := c.call(cmd.Context(), http.MethodPost, "reload", nil, nil, nil); err != nil {
			return err
		}
		return printLine(cmd, "settings%s reloaded", c.ofLeader(cmd.Context()))
	})
	return cmd
}

// ofLeader says whose settings a broker tells and reloads, if that is a node of a cluster.
func (c *client) ofLeader(ctx context.Context) string {
	var answer struct{ Settings []service.Setting }
	if _, err := c.call(ctx, http.MethodGet, "settings", nil, nil, &answer); err != nil {
		return "" // what was asked for is done
	}
	for i := range answer.Settings {
		if s := &answer.Settings[i]; s.Name == "cluster.node" && s.Value != "" {
			return " of " + s.Value + ", the leader,"
		}
	}
	return ""
}

// tokenCommand needs no broker.
func tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "token", Short: "make tokens for principals", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }, // so that cobra checks the arguments
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "new",
		Short: "print a new token and its hash for the settings file",
		Long: "Print a new random token, and its hash. The client gets the token (--token, BROKER_TOKEN, Authorization: Bearer); the settings file\n" +
			"gets the hash, from which the token does not follow.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			token := rand.Text()
			return printLine(cmd, "token   %s\nhash    sha256:%x", token, sha256.Sum256([]byte(token)))
		},
	})
	return cmd
}

func auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "show the audit log, the newest entries first",
	}
	header := []string{"-NUMBER", "WHEN", "WHO", "FROM", "WHAT", "ON", "-JOBS", "BEFORE", "AFTER"}
	return listCommand(cmd, "audit", "entries", header, func(e *service.AuditEntry) []string {
		jobs := ""
		if e.Jobs > 0 {
			jobs = count(e.Jobs)
		}
		return []string{
			strconv.FormatUint(e.Number, 10), local(&e.At), oneLine(e.Who, 30), oneLine(e.Address, 40), e.Action,
			oneLine(e.Target, 60), jobs, oneLine(e.Before, 60), oneLine(e.After, 60),
		}
	})
}

func undoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undo ID",
		Short: "undo a change of jobs or of a setting within an hour",
		Long: "Undo an operation such as op-7, which 'broker retry', kill, move or priority has started, or an entry of the audit log by its\n" +
			"number: a pause, a limit, a policy or a schedule. Jobs and settings that have changed since stay as they are. Jobs cannot be put\n" +
			"back after a restart of the broker; settings can.",
		Example: "  broker undo op-7\n  broker undo 12",
		Args:    cobra.ExactArgs(1),
	}
	conn := addConnection(cmd)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		if _, err := strconv.ParseUint(args[0], 10, 64); err == nil {
			if _, err := c.call(cmd.Context(), http.MethodPost, "audit/"+args[0]+"/undo", nil, nil, nil); err != nil {
				return err
			}
			return printLine(cmd, "entry %s is undone", args[0])
		}
		var op service.Operation
		path := "operations/" + url.PathEscape(args[0]) + "/undo"
		raw, err := c.call(cmd.Context(), http.MethodPost, path, nil, nil, &op)
		if err == nil {
			_, err = c.follow(cmd, &op, raw)
		}
		if err != nil {
			return err
		}
		if op.Skipped > 0 {
			return printLine(cmd, "%s put back; %d had changed since", plural(op.Changed, "job"), op.Skipped)
		}
		return printLine(cmd, "%s put back", plural(op.Changed, "job"))
	})
	return cmd
}

func drainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "stop handing out jobs, so that workers can finish",
		Long: "Stop handing out jobs of all queues: running jobs finish, no new ones start. With --off jobs are handed out\n" +
			"again. A restart ends draining too.",
		Args: noArgs,
	}
	conn, out := addConnection(cmd), addFormat(cmd)
	off := cmd.Flags().Bool("off", false, "hand out jobs again")
	wait := cmd.Flags().Bool("wait", false, "wait until no worker has a job")
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, _ []string) error {
		path := "drain"
		if *off {
			path = "resume"
		}
		var state service.Drain
		raw, err := c.call(cmd.Context(), http.MethodPost, path, nil, map[string]any{}, &state)
		for err == nil && *wait && !*off && state.Leased > 0 && cmd.Context().Err() == nil {
			pause(cmd.Context(), time.Second)
			raw, err = c.call(cmd.Context(), http.MethodGet, "drain", nil, nil, &state)
		}
		if err != nil {
			return err
		}
		text := "jobs are handed out again"
		if state.Draining {
			text = "draining: workers have " + plural(state.Leased, "job")
		}
		return printAnswer(cmd, *out, raw, "%s", text)
	})
	return cmd
}

func healthcheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "exit with 0 if the broker serves clients",
		Long:  "Exit with 0 if the broker serves clients, for containers and supervisors. With --live it is enough that the process works.",
		Args:  noArgs,
	}
	conn := addConnection(cmd)
	live := cmd.Flags().Bool("live", false, "also while the broker starts or drains")
	timeout := cmd.Flags().Duration("timeout", 5*time.Second, "how long to wait")
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, _ []string) error {
		path := "readyz"
		if *live {
			path = "healthz"
		}
		c.http.Timeout = *timeout
		req, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, c.base.JoinPath(path).String(), nil)
		if err != nil {
			return Failed(err)
		}
		resp, err := c.http.Do(req)
		if err != nil {
			return c.unanswered(err)
		}
		defer func() { _ = resp.Body.Close() }() // only read
		if resp.StatusCode != http.StatusOK {
			return Failed(fmt.Errorf("/%s says %s", path, resp.Status))
		}
		return nil
	})
	return cmd
}
