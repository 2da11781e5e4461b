package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"broker/core/schema"
)

type policy struct {
	Scope  string                     `json:"scope"`
	Name   string                     `json:"name"`
	Policy map[string]json.RawMessage `json:"policy"`
}

func policiesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policies [NAME]",
		Short: "list the policies of queues and types and change them",
		Long: "List the policies of queues and types, or the policy of the queue or type NAME. A policy sets defaults for jobs.\n" +
			"Policies of the settings file can only be changed there.",
		Example: "  broker policies\n  broker policies set mail --max-fails 5 --backoff 10s,1m,10m --on-exhausted move:mail-dead\n  broker policies set Report --type --lease-for 15m",
		Args:    cobra.MaximumNArgs(1),
	}
	conn, out := addConnection(cmd), addFormat(cmd)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		var answer struct{ Policies []policy }
		if _, err := c.call(cmd.Context(), http.MethodGet, "policies", nil, nil, &answer); err != nil {
			return err
		}
		rows := slices.DeleteFunc(answer.Policies, func(p policy) bool { return len(args) > 0 && p.Name != args[0] })
		if *out == formatJSON {
			return PrintValue(cmd, map[string]any{"policies": rows})
		}
		t := &table{header: []string{"OF", "NAME", "POLICY", "FROM"}}
		for i := range rows {
			p := &rows[i]
			t.add(p.Scope, oneLine(p.Name, 40), oneLine(schema.Sentence(schema.PolicyRows, p.Policy, true), 300),
				mark(p.Policy["from_config"] != nil, "settings file"))
		}
		return t.print(cmd.OutOrStdout())
	})
	cmd.AddCommand(setPolicyCommand(), removePolicyCommand())
	return cmd
}

// changePolicy changes members of a policy. It removes members that are nil.
func (c *client) changePolicy(cmd *cobra.Command, name string, ofType bool, members map[string]any) error {
	path := "queues/"
	if ofType {
		path = "types/"
	}
	_, err := c.call(cmd.Context(), http.MethodPatch, path+url.PathEscape(name), nil, map[string]any{"policy": members},
		nil)
	return err
}

const ofTypeUsage = "NAME is a type of jobs, not a queue"

func setPolicyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "set NAME", Short: "set members of the policy of a queue or type", Args: cobra.ExactArgs(1),
		Long:    "Set members of the policy of the queue NAME, which need not exist yet, or with --type of a type. Other members do not change.",
		Example: "  broker policies set mail --max-fails 5 --backoff exponential:2s --backoff-max 10m --jitter 0.5\n  broker policies set mail --unset backoff,max-fails",
	}
	conn, f := addConnection(cmd), cmd.Flags()
	ofType := f.Bool("type", false, ofTypeUsage)
	given := addRows(f, schema.PolicyRows)
	most := f.String("backoff-max", "", "the longest such wait, a `SPAN`; not for a list")
	jitter := f.String("jitter", "", "the `PART` of such a wait that is random, from 0 to 1; not for a list")
	unset := f.StringSlice("unset", nil, "`MEMBERS` to remove, such as backoff,max-fails")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *most != "" || *jitter != "" {
			if !strings.Contains(given["backoff"], ":") {
				return UsageError(errors.New(
					"--backoff-max and --jitter need --backoff constant:SPAN, linear:SPAN or exponential:SPAN"))
			}
			given["backoff"] = schema.JoinBackoff(given["backoff"], *most, *jitter)
		}
		members, err := members(schema.PolicyRows, given)
		if err != nil {
			return err
		}
		for _, name := range *unset {
			members[memberOf(schema.PolicyRows, name)] = nil
		}
		if len(members) == 0 {
			return UsageError(errors.New("expected a member to set or --unset; broker policies rm removes a policy"))
		}
		c, err := conn.open()
		if err != nil {
			return err
		}
		if err := c.changePolicy(cmd, args[0], *ofType, members); err != nil {
			return err
		}
		return printLine(cmd, "the policy of %s is changed", args[0])
	}
	return cmd
}

// policyExists returns an error if a queue or type has no policy.
func (c *client) policyExists(cmd *cobra.Command, name string, ofType bool) error {
	scope := "queue"
	if ofType {
		scope = "type"
	}
	var answer struct{ Policies []policy }
	if _, err := c.call(cmd.Context(), http.MethodGet, "policies", nil, nil, &answer); err != nil {
		return err
	}
	if !slices.ContainsFunc(answer.Policies, func(p policy) bool { return p.Name == name && p.Scope == scope }) {
		return &ExitError{Code: ExitNotFound, Err: fmt.Errorf("the %s %s has no policy", scope, name)}
	}
	return nil
}

func removePolicyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "rm NAME", Short: "remove the policy of a queue or type", Args: cobra.ExactArgs(1)}
	conn := addConnection(cmd)
	ofType := cmd.Flags().Bool("type", false, ofTypeUsage)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		members := map[string]any{}
		for _, row := range schema.PolicyRows {
			members[row.Name] = nil
		}
		if err := c.policyExists(cmd, args[0], *ofType); err != nil {
			return err
		}
		if err := c.changePolicy(cmd, args[0], *ofType, members); err != nil {
			return err
		}
		return printLine(cmd, "the policy of %s is removed", args[0])
	})
	return cmd
}
