package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"broker/operate/service"
)

// event is what the stream sends: an event of the API, or, if its name is dropped, the last two members.
type event struct {
	service.Event
	Dropped   int  `json:"dropped"`
	Restarted bool `json:"restarted"`
}

func tailCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "tail",
		Short:   "follow the events of jobs, queues and workers",
		Long:    "Print events as they happen, until interrupted. With -o json, print one JSON object a line.",
		Example: "  broker tail --queue emails --kind failed,dead\n  broker tail --job 0198c5a2-7d1e-7adc-8000-4f1e2d3c4b5a -o json",
		Args:    noArgs,
	}
	conn, out := addConnection(cmd), addFormat(cmd)
	queues := cmd.Flags().StringArray("queue", nil, "of this `QUEUE`; may be given several times")
	prefix := cmd.Flags().String("queue-prefix", "", "of queues whose names start with `TEXT`")
	kinds := cmd.Flags().StringSlice("kind", nil,
		"of this `KIND`: submitted, leased, progress, done, failed, retrying, dead, …")
	types := cmd.Flags().StringArray("type", nil, "of jobs of this `TYPE`")
	id := cmd.Flags().String("job", "", "of the job with this `ID`")
	limit := cmd.Flags().IntP("count", "n", 0, "end after this many events (0: never)")
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, _ []string) error {
		query := url.Values{"queue": *queues, "kind": *kinds, "type": *types}
		for name, text := range map[string]string{"queue_prefix": *prefix, "job": *id} {
			if text != "" {
				query.Set(name, text)
			}
		}
		s := eventStream{client: c, query: query, limit: *limit, print: func(data []byte) error {
			return printEvent(cmd.OutOrStdout(), data, *out)
		}}
		return s.follow(cmd)
	})
	return cmd
}

// eventStream reads events, and resumes after the last one when the connection is lost.
type eventStream struct {
	client *client
	query  url.Values
	print  func(data []byte) error
	limit  int // of events; 0: none
	count  int
	lastID string
	outage outage
}

// errEnough ends a stream after the requested number of events.
var errEnough = errors.New("enough events")

// follow reads until it is interrupted. It returns an error if the broker refuses the request, or does not serve it at
// the first attempt.
func (s *eventStream) follow(cmd *cobra.Command) error {
	connected := false
	s.outage.say = func(format string, args ...any) { Say(cmd.ErrOrStderr(), "broker tail: "+format+"\n", args...) }
	for cmd.Context().Err() == nil {
		err := s.read(cmd.Context(), &connected)
		switch {
		case errors.Is(err, errEnough) || cmd.Context().Err() != nil:
			return nil
		case isRefused(err) || !connected:
			return err
		}
		_ = s.outage.failed(errors.New("connection lost")) // without patience, it is none
		pause(cmd.Context(), retryPause)
	}
	return nil
}

// read prints events until the connection ends.
func (s *eventStream) read(ctx context.Context, connected *bool) error {
	req, err := s.client.request(ctx, http.MethodGet, "events", s.query, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	if s.lastID != "" {
		req.Header.Set("Last-Event-ID", s.lastID)
	}
	resp, err := s.client.send(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	*connected = true
	s.outage.answered()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	var data []byte
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "" && len(data) > 0:
			if err := s.print(data); err != nil {
				return err
			}
			data = nil
			if s.count++; s.count == s.limit {
				return errEnough
			}
		case field == "data":
			data = append(data, value...)
		case field == "id":
			s.lastID = value
		}
	}
	return lines.Err()
}

func printEvent(w io.Writer, data []byte, out format) error {
	if out == formatJSON {
		_, err := fmt.Fprintf(w, "%s\n", data)
		return Failed(err)
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return Failed(fmt.Errorf("unexpected event: %w", err))
	}
	_, err := fmt.Fprintln(w, strings.TrimRight(e.String(), " "))
	return Failed(err)
}

// String is the event for people, on one line.
func (e *event) String() string {
	switch {
	case e.Restarted:
		return "(the broker no longer has the events of the meantime)"
	case e.Dropped > 0:
		return "(" + plural(e.Dropped, "event") + " dropped: they came faster than they were read)"
	}
	what := e.Queue
	if e.Type != "" && e.Type != e.Queue {
		what += "/" + e.Type
	}
	at := cmp.Or(e.At, &time.Time{})
	line := fmt.Sprintf("%s  %-13s  %-24s  %s", at.Local().Format("15:04:05.000"), e.Kind, oneLine(what, 60),
		cmp.Or(e.Job, "-"))
	for _, more := range []string{e.Worker, e.Detail} {
		if more != "" {
			line += "  " + oneLine(more, 200)
		}
	}
	return line
}
