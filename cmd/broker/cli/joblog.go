package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"broker/operate/service"
)

// jobLog is an answer of the API. Its lines can be printed unchanged.
type jobLog struct {
	Lines  []json.RawMessage `json:"lines"`
	Cursor string            `json:"cursor"`
	State  string            `json:"state"`
}

// jobLogCommand shows the log of a job.
func jobLogCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "log ID",
		Short:   "show the log of a job, which its workers write",
		Long:    "Show the log of a job: the first and the last lines from its workers. With -o json, print one JSON object a line.",
		Example: "  broker jobs log 0198c5a2-7d1e-7adc-8000-4f1e2d3c4b5a\n  broker jobs log H:myhost:42 --follow",
		Args:    cobra.ExactArgs(1),
	}
	conn, out := addConnection(cmd), addFormat(cmd)
	follow := cmd.Flags().BoolP("follow", "f", false, "continue until the job has ended")
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		f := logFollower{client: c, id: args[0], every: time.Second, print: func(raw json.RawMessage) error {
			return printLogLine(cmd.OutOrStdout(), raw, *out)
		}}
		if *follow {
			return f.follow(cmd)
		}
		_, err := f.read(cmd)
		return err
	})
	return cmd
}

// logFollower prints the lines of a log once each.
type logFollower struct {
	client *client
	id     string
	every  time.Duration
	print  func(json.RawMessage) error
	cursor string
}

// follow reads until the job has ended or been removed, or the command is interrupted. It returns an error if the
// broker refuses the request, or does not serve it at the first attempt.
func (f *logFollower) follow(cmd *cobra.Command) error {
	for {
		state, err := f.read(cmd)
		switch {
		case cmd.Context().Err() != nil:
			return nil
		case hasExit(err, ExitNotFound) && f.cursor != "":
			return nil // its log was removed with it
		case err != nil && (f.cursor == "" || isRefused(err)):
			return err
		case err != nil:
			Say(cmd.ErrOrStderr(), "broker jobs log: connection lost, trying again\n")
		case state == "done" || state == "dead":
			return nil
		}
		pause(cmd.Context(), f.every)
	}
}

// read prints the new lines since the last call, and returns the state of the job before them.
func (f *logFollower) read(cmd *cobra.Command) (state string, err error) {
	var log jobLog
	query := url.Values{}
	if f.cursor != "" {
		query.Set("cursor", f.cursor)
	}
	if _, err := f.client.call(cmd.Context(), http.MethodGet, "jobs/"+url.PathEscape(f.id)+"/log", query, nil,
		&log); err != nil {
		return "", err
	}
	f.cursor = log.Cursor
	for _, raw := range log.Lines {
		if err := f.print(raw); err != nil {
			return "", err
		}
	}
	return log.State, nil
}

func printLogLine(w io.Writer, raw json.RawMessage, out format) error {
	if out == formatJSON {
		_, err := fmt.Fprintf(w, "%s\n", raw)
		return Failed(err)
	}
	var l service.LogLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return Failed(fmt.Errorf("unexpected line: %w", err))
	}
	text := oneLine(strings.ReplaceAll(l.Text, "\t", "    "), len(l.Text)*4)
	_, err := fmt.Fprintln(w, strings.TrimRight(local(l.At)+"  "+text, " "))
	return Failed(err)
}
