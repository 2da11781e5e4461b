package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"broker/frontends/shared/tracecontext"
	"broker/operate/service"
)

// maxShownBody is the maximum part of a body that a table shows, in bytes.
const maxShownBody = 4 << 10

func jobCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "job ID...",
		Short:   "show the details of a job",
		Long:    "Show the details of a job. ID is its id in any protocol: a UUID, a Faktory jid, a Gearman handle.",
		Example: "  broker job H:myhost:42\n  broker job 0198c5a2-7d1e-7adc-8000-4f1e2d3c4b5a -o json",
		Args:    cobra.MinimumNArgs(1),
	}
	conn, out := addConnection(cmd), addFormat(cmd)
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		for i, id := range args {
			var j service.Job
			raw, err := c.call(cmd.Context(), http.MethodGet, "jobs/"+url.PathEscape(id), nil, nil, &j)
			if err != nil {
				return fmt.Errorf("%s: %w", oneLine(id, 200), err)
			}
			if *out == formatJSON {
				err = printJSON(cmd.OutOrStdout(), raw)
			} else {
				if i > 0 {
					_, _ = fmt.Fprintln(cmd.OutOrStdout()) // the next line reports it
				}
				_, err = io.WriteString(cmd.OutOrStdout(), jobText(&j))
				err = Failed(err)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return cmd
}

// jobText is a job for people, on several lines.
func jobText(j *service.Job) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-12s %s\n", name, value)
		}
	}
	line("id", j.ID)
	line("state", j.State)
	if j.Wait != nil {
		line("waits", oneLine(j.Wait.Text, 400))
	}
	line("queue", oneLine(j.Queue, 200))
	if j.Type != j.Queue {
		line("type", oneLine(j.Type, 200))
	}
	line("from", j.Origin)
	if j.Priority != 0 {
		line("priority", fmt.Sprint(j.Priority))
	}
	line("created", local(j.CreatedAt))
	line("ready", local(j.ReadyAt))
	for _, t := range j.Terms() {
		line(t.Name, strings.TrimSpace(local(t.At)+" "+t.Note))
	}
	line("leased", local(j.LeasedAt))
	line("lease ends", local(j.LeaseUntil))
	line("to stop", local(j.CancelAt))
	line("rerun of", j.RerunOf)
	line("worker", oneLine(j.Worker, 200))
	line("tries", tries(j))
	line("unique key", oneLine(uniqueLabel(j.UniqueKey), 200))
	line("trace", tracecontext.TraceID(j.Traceparent))
	line("tags", oneLine(strings.Join(j.Tags, ", "), 400))
	if p := j.Progress; p != nil && p.Percent != nil {
		line("progress", strings.TrimSpace(fmt.Sprintf("%.0f %% %s", *p.Percent, oneLine(p.Text, 200))))
	}
	if f := j.Failure; f != nil {
		line("failure", oneLine(strings.TrimPrefix(f.Type+": "+f.Message, ": "), 1000))
		for _, at := range f.Backtrace {
			line("", "  "+oneLine(at, 300))
		}
	}
	line("body", size(int64(j.BodyBytes)))
	if text := shownBody(j); text != "" {
		b.WriteString("\n" + text + "\n")
	}
	if o := j.Outcome; o != nil && o.Success {
		if result := resultBytes(o); len(result) > 0 {
			b.WriteString("\nresult\n" + clip(result) + "\n")
		}
	}
	if len(j.Timeline) > 0 {
		b.WriteString("\n")
		for _, e := range j.Timeline {
			words := slices.DeleteFunc([]string{e.Kind, e.Worker, e.Detail, e.Text},
				func(s string) bool { return s == "" })
			fmt.Fprintf(&b, "%s  %s\n", local(e.At), oneLine(strings.Join(words, "  "), 200))
		}
	}
	return b.String()
}

// uniqueLabel is a unique key as its client gave it. The API shows the marks of keys from Gearman and Workq clients.
func uniqueLabel(key string) string {
	if given, ok := strings.CutPrefix(key, "\x02u"); ok {
		return given
	}
	return strings.TrimPrefix(key, "\x01")
}

func tries(j *service.Job) string {
	text := plural(int(j.Attempts), "lease")
	if j.Fails > 0 || j.MaxFails > 0 {
		text += ", " + plural(int(j.Fails), "failure")
		if j.MaxFails > 0 {
			text += " of " + fmt.Sprint(j.MaxFails)
		}
	}
	return text
}

// local shows a time in the user's zone.
func local(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

// shownBody is a job's body for a terminal, with indented arguments.
func shownBody(j *service.Job) string {
	switch {
	case len(j.Args) > 0:
		var b bytes.Buffer
		if json.Indent(&b, j.Args, "", "  ") != nil {
			return clip(j.Args)
		}
		return clip(b.Bytes())
	case j.Body != nil:
		return clip([]byte(*j.Body))
	case j.BodyBase64 != nil:
		return clip([]byte(base64.StdEncoding.EncodeToString(j.BodyBase64))) + " (base64)"
	}
	return ""
}

// clip limits the length of text and makes it safe for a terminal, line by line.
func clip(b []byte) string {
	cut := ""
	if len(b) > maxShownBody {
		b, cut = b[:maxShownBody], "\n… (-o json shows all)"
	}
	lines := strings.Split(strings.ToValidUTF8(string(b), "�"), "\n")
	for i, l := range lines {
		lines[i] = oneLine(l, maxShownBody)
	}
	return strings.Join(lines, "\n") + cut
}
