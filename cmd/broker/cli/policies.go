package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// policyMembers are the members of a policy in the order in which they are shown.
var policyMembers = []string{
	"max_fails", "max_attempts", "backoff", "on_exhausted", "lease_for_s", "expires_in_s", "retain_for_s", "durability",
}

type policy struct {
	Scope  string                     `json:"scope"`
	Name   string                     `json:"name"`
	Policy map[string]json.RawMessage `json:"policy"`
}

// text lists the members of a policy.
func (p *policy) text() string {
	var parts []string
	for _, name := range policyMembers {
		if value, ok := p.Policy[name]; ok {
			parts = append(parts, policyText(name, value))
		}
	}
	return strings.Join(parts, ", ")
}

// policyText shows a member in the form of the flags.
func policyText(name string, value json.RawMessage) string {
	flag, inSeconds := strings.CutSuffix(name, "_s")
	flag = strings.ReplaceAll(flag, "_", "-")
	var number float64
	var spans []float64
	var word string
	var object struct {
		Kind   string  `json:"kind"`
		BaseS  float64 `json:"base_s"`
		MaxS   float64 `json:"max_s"`
		Jitter float64 `json:"jitter"`
		Move   string  `json:"move"`
	}
	switch {
	case inSeconds && json.Unmarshal(value, &number) == nil:
		return flag + " " + span(seconds(number))
	case json.Unmarshal(value, &spans) == nil:
		texts := make([]string, len(spans))
		for i, s := range spans {
			texts[i] = span(seconds(s))
		}
		return flag + " " + strings.Join(texts, ",")
	case json.Unmarshal(value, &word) == nil:
		return flag + " " + word
	case json.Unmarshal(value, &object) == nil && object.Move != "":
		return flag + " move to " + oneLine(object.Move, 40)
	case object.Kind != "":
		text := flag + " " + object.Kind + " " + span(seconds(object.BaseS))
		if object.MaxS > 0 {
			text += " up to " + span(seconds(object.MaxS))
		}
		if object.Jitter > 0 {
			text += " with jitter " + strconv.FormatFloat(object.Jitter, 'g', 3, 64)
		}
		return text
	}
	return flag + " " + string(value)
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
			t.add(p.Scope, oneLine(p.Name, 40), p.text(), mark(p.Policy["from_config"] != nil, "settings file"))
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
	maxFails := f.Uint32("max-fails", 0, "failures after which there is no further try")
	maxAttempts := f.Uint32("max-attempts", 0, "leases after which there is no further try")
	backoff := f.String("backoff", "",
		"`WAITS` between a failure and the next try: a list such as 10s,1m,10m of which the last one is repeated,\nor constant:10s, linear:10s or exponential:10s")
	most := f.String("backoff-max", "", "the longest such wait, a `SPAN`; not for a list")
	jitter := f.Float64("jitter", 0, "the part of such a wait that is random, from 0 to 1; not for a list")
	exhausted := f.String("on-exhausted", "", "after the last try: dead, drop or move:QUEUE (`WHAT`)")
	durability := f.String("durability", "", "none: new jobs are in memory only, and a restart loses them (`HOW`)")
	spans := map[string]*string{
		"lease-for":  f.String("lease-for", "", "a worker's time to finish, a `SPAN` such as 15m or 2d"),
		"expires-in": f.String("expires-in", "", "jobs are removed after this `SPAN`, whatever their state"),
		"retain-for": f.String("retain-for", "", "how long outcomes are kept, a `SPAN`"),
	}
	unset := f.StringSlice("unset", nil, "`MEMBERS` to remove, such as backoff,max-fails")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		members := map[string]any{}
		for _, name := range *unset {
			name = strings.ReplaceAll(name, "-", "_")
			if slices.Contains(policyMembers, name+"_s") {
				name += "_s"
			}
			members[name] = nil
		}
		for name, n := range map[string]*uint32{"max-fails": maxFails, "max-attempts": maxAttempts} {
			if f.Changed(name) {
				members[strings.ReplaceAll(name, "-", "_")] = *n
			}
		}
		for name, text := range spans {
			if *text == "" {
				continue
			}
			d, err := policySpan("--"+name, *text)
			if err != nil {
				return err
			}
			members[strings.ReplaceAll(name, "-", "_")+"_s"] = d
		}
		if err := backoffFlags(members, *backoff, *most, *jitter); err != nil {
			return err
		}
		if queue, moves := strings.CutPrefix(*exhausted, "move:"); moves {
			members["on_exhausted"] = map[string]any{"move": queue}
		} else if *exhausted != "" {
			members["on_exhausted"] = *exhausted
		}
		if *durability != "" {
			members["durability"] = *durability
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

// policySpan reads a duration as seconds.
func policySpan(flag, text string) (float64, error) {
	d, err := parseSpan(text)
	if err != nil || d < 0 {
		return 0, UsageError(fmt.Errorf("%s: %q is not a span such as 90s, 15m or 2d", flag, text))
	}
	return d.Seconds(), nil
}

// backoffFlags adds the backoff to the members of a policy.
func backoffFlags(members map[string]any, backoff, most string, jitter float64) error {
	kind, base, isRule := strings.Cut(backoff, ":")
	if !isRule && (most != "" || jitter != 0) {
		return UsageError(
			errors.New("--backoff-max and --jitter need --backoff constant:SPAN, linear:SPAN or exponential:SPAN"),
		)
	}
	if backoff == "" {
		return nil
	}
	if !isRule {
		var waits []float64
		for text := range strings.SplitSeq(backoff, ",") {
			d, err := policySpan("--backoff", text)
			if err != nil {
				return err
			}
			waits = append(waits, d)
		}
		members["backoff"] = waits
		return nil
	}
	rule := map[string]any{"kind": kind}
	for member, text := range map[string]string{"base_s": base, "max_s": most} {
		if text == "" {
			continue
		}
		d, err := policySpan("--backoff", text)
		if err != nil {
			return err
		}
		rule[member] = d
	}
	if jitter != 0 {
		rule["jitter"] = jitter
	}
	members["backoff"] = rule
	return nil
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
		for _, name := range policyMembers {
			members[name] = nil
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
