package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"broker/core/shellword"
	"broker/migrate/switchover"
)

// ShadowCommands change a running broker shadow through the address of its page.
func ShadowCommands(at string) []*cobra.Command {
	return []*cobra.Command{
		shadowChange(at, switchover.ActionCutOver, "send the new jobs of queues to the broker",
			"  broker shadow cut-over mail video"),
		shadowChange(at, switchover.ActionRollBack, "send the new jobs of queues to the old server again",
			"  broker shadow roll-back mail"),
		shadowStatus(at),
	}
}

func shadowChange(at, action, short, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use: action + " QUEUE...", Short: short, Example: example, Args: cobra.MinimumNArgs(1),
		Long: "For a broker shadow on this machine, started with --to: " + short + ". Workers get jobs from both.",
	}
	flag, out := addShadowAddress(cmd, at), addFormat(cmd)
	cmd.RunE = func(cmd *cobra.Command, queues []string) error {
		if *out != formatJSON {
			return ChangeShadow(cmd, *flag, action, queues)
		}
		s, err := changeShadow(cmd.Context(), *flag, action, queues)
		if err != nil {
			return Failed(err)
		}
		return PrintValue(cmd, s)
	}
	return cmd
}

// ChangeShadow changes queues of the running shadow whose page is at an address, and prints the result.
func ChangeShadow(cmd *cobra.Command, at, action string, queues []string) error {
	s, err := changeShadow(cmd.Context(), at, action, queues)
	if err != nil {
		return Failed(err)
	}
	w := cmd.OutOrStdout()
	if action == switchover.ActionCutOver {
		line := importLine(s, queues)
		Say(w, "new jobs of %s go to the broker at %s\nmove the waiting ones: %s\n", listed(queues), s.Broker, line)
		if strings.Contains(line, unknownPort) {
			Say(w, "%s is the port of that broker's http.listen, %s unless it was set\n", unknownPort, defaultPort)
		}
		return nil
	}
	Say(w,
		"new jobs of %s go to the old server at %s again; workers get the jobs of both\nend imports of these queues, if some still run\n",
		listed(queues), s.Server)
	return nil
}

func changeShadow(ctx context.Context, at, action string, queues []string) (s switchover.Status, err error) {
	body, err := json.Marshal(switchover.Change{Action: action, Queues: queues})
	if err != nil {
		return s, err
	}
	return callShadow(ctx, http.MethodPost, at, bytes.NewReader(body))
}

func shadowStatus(at string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "list the queues that are or were cut over", Args: cobra.NoArgs,
		Long: "List the queues that a broker shadow on this machine has cut over. A queue is new (its new jobs go to the broker) or returned\n" +
			"(they go to the old server again). The jobs that either has accepted are counted from the first cut-over on.",
	}
	flag, out := addShadowAddress(cmd, at), addFormat(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := callShadow(cmd.Context(), http.MethodGet, *flag, nil)
		if err != nil {
			return Failed(err)
		}
		if *out == formatJSON {
			return PrintValue(cmd, s)
		}
		t := table{header: []string{"QUEUE", "STATE", "SINCE", "-TO BROKER", "-TO OLD SERVER"}}
		for _, q := range s.Queues {
			t.add(oneLine(q.Name, 60), string(q.State), q.Since.Format(time.DateTime), count(int(q.ToBroker)),
				count(int(q.ToServer)))
		}
		return t.print(cmd.OutOrStdout())
	}
	return cmd
}

func addShadowAddress(cmd *cobra.Command, at string) *string {
	return cmd.Flags().String("at", at, "`HOST:PORT` of the page of the shadow (its --http)")
}

// shadowWithin limits the time for a reply of the shadow, which may wait for the broker.
const shadowWithin = time.Minute

func callShadow(ctx context.Context, method, at string, body io.Reader) (s switchover.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, shadowWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+at+"/queues", body)
	if err != nil {
		return s, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, &ExitError{Code: ExitUnreachable, Err: fmt.Errorf("no broker shadow at %s: %w", at, withoutURL(err))}
	}
	defer func() { _ = resp.Body.Close() }() // it has been read
	if resp.StatusCode != http.StatusOK {
		var p switchover.Problem
		if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || p.Error == "" {
			return s, fmt.Errorf("no broker shadow at %s: status %s", at, resp.Status)
		}
		return s, Failed(&problem{Status: resp.StatusCode, Code: p.Code, Detail: p.Error})
	}
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// unknownPort stands for the port of the broker's HTTP API in a command. The shadow knows only the broker's
// port for the protocol, and a guess could move the jobs into another broker.
const unknownPort = "HTTP_PORT"

// importLine is the command that moves the waiting jobs of queues from the old server.
func importLine(s switchover.Status, queues []string) string {
	from, to := s.Protocol, "--to "+s.Broker
	if server := importServerOf(s.Protocol); server != nil {
		from = server.name
		if server.overHTTP() {
			host, _, err := net.SplitHostPort(s.Broker)
			if err != nil || host == "" {
				host = "127.0.0.1"
			}
			to = "--server http://" + net.JoinHostPort(host, unknownPort)
		}
	}
	return fmt.Sprintf("broker import --from %s %s %s --queues %s --follow", from, s.Server, to,
		shellword.Quote(strings.Join(queues, ",")))
}

// listed joins names for a sentence.
func listed(names []string) string {
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = oneLine(name, 60)
	}
	return strings.Join(shown, ", ")
}
