package cli

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"broker/core/schema"
	"broker/operate/service"
)

// pushBatch is the number of jobs in one request of --lines. Each request is one commit.
const pushBatch = 1000

// submission holds the flags that describe a job, for push and run.
type submission struct {
	typ, at, unique, id string
	onDuplicate         string
	uniqueUntil         string
	uniqueFor           time.Duration
	debounceMax         time.Duration
	onBroken            string
	after               []string
	in, lease, expires  time.Duration
	deadline            time.Duration
	retain              time.Duration
	priority            int
	cost                uint32
	retries             int
	tags                []string
	args                bool
	changed             func(flag string) bool
	warn                func(text string)
}

func addSubmission(cmd *cobra.Command) *submission {
	s := &submission{changed: cmd.Flags().Changed, warn: func(text string) { Say(cmd.ErrOrStderr(), "%s\n", text) }}
	f := cmd.Flags()
	f.StringVar(&s.typ, "type", "", "what to run, for workers that dispatch by `TYPE` (default: the queue)")
	f.StringVar(&s.at, "at", "",
		"not before `TIME`: RFC 3339, \"2006-01-02 15:04\" in local time, or a span from now such as 90m or 2d")
	f.DurationVar(&s.in, "in", 0, "not before this much time has passed")
	f.IntVar(&s.priority, "priority", 0, "higher first; 0 is normal")
	f.Uint32Var(&s.cost, "cost", 1, "how much the job counts in limits and rates")
	f.IntVar(&s.retries, "retries", 0,
		"how often a failed job is tried again (default 24, unless a policy says otherwise)")
	f.StringVar(&s.unique, "unique", "", "only one live job of the queue may have this `KEY`")
	f.StringVar(&s.onDuplicate, "on-duplicate", "",
		"when a job has the key: `WORD` is refuse (default), coalesce, or replace to change that job while it waits")
	f.StringVar(&s.uniqueUntil, "unique-until", "",
		"when the key is free again: `WORD` is end (default), start of the job, or window: only after --unique-for")
	f.DurationVar(&s.uniqueFor, "unique-for", 0, "the key is free after this time, even if the job has not ended")
	f.DurationVar(&s.debounceMax, "debounce-max", 0,
		"with --on-duplicate replace and --in: due no later than this time after the first submission")
	f.StringArrayVar(&s.after, "after", nil, "wait until the job with this `ID` is done; may be given several times")
	f.StringVar(&s.onBroken, "on-broken", "",
		"when such a job dies or is cancelled: `WORD` is wait (default), release, fail or drop")
	f.StringArrayVar(&s.tags, "tag", nil, "a tag; may be given several times")
	f.BoolVar(&s.args, "args", false, "refuse a body that is not a JSON array of arguments")
	f.StringVar(&s.id, "id", "", "the job's own id (default: one is made)")
	f.DurationVar(&s.lease, "lease-for", 0, "time that a worker has to finish (0: as without a policy)")
	f.DurationVar(&s.expires, "expires-in", 0,
		"removed after this time, whatever its state (0: never, also if a policy says otherwise)")
	f.DurationVar(&s.deadline, "deadline-in", 0, "it should be done within this time; the broker shows whether it is late")
	f.DurationVar(&s.retain, "retain-for", 0,
		"how long the ended job is kept, with its result and log (0: not at all, also if a policy says otherwise)")
	return s
}

// job is the request for one job.
func (s *submission) job(queue string, body []byte, now time.Time) (map[string]any, error) {
	j := map[string]any{"queue": queue}
	setBody(j, body)
	if _, isArgs := j["args"]; !isArgs {
		if s.args {
			return nil, UsageError(fmt.Errorf("the body is not a JSON array: %s", oneLine(string(body), 80)))
		}
		if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
			s.warn("the body looks like a JSON array and is not one: it is sent as text; --args refuses that")
		}
	}
	at, err := s.runAt(now)
	if err != nil {
		return nil, err
	}
	if !at.IsZero() {
		j["run_at"] = at.Format(time.RFC3339Nano)
	}
	for name, text := range map[string]string{
		"type": s.typ, "unique_key": s.unique, "id": s.id, "on_broken": s.onBroken, "on_duplicate": s.onDuplicate,
		"unique_until": s.uniqueUntil,
	} {
		if text != "" {
			j[name] = text
		}
	}
	if s.priority != 0 {
		j["priority"] = s.priority
	}
	if s.cost != 1 {
		j["cost"] = s.cost
	}
	if s.changed("retries") {
		if s.retries < 0 {
			return nil, UsageError(errors.New("--retries: expected 0 or more"))
		}
		j["max_fails"] = s.retries + 1 // the first failure is not a retry
	}
	if len(s.after) > 0 {
		j["after"] = s.after
	}
	if len(s.tags) > 0 {
		j["tags"] = s.tags
	}
	for name, span := range map[string]time.Duration{
		"debounce_max_s": s.debounceMax, "unique_for_s": s.uniqueFor, "deadline_in_s": s.deadline,
	} {
		if span > 0 {
			j[name] = span.Seconds()
		}
	}
	if s.changed("lease-for") {
		j["lease_for_s"] = s.lease.Seconds()
	}
	if s.changed("retain-for") {
		j["retain_for_s"] = s.retain.Seconds()
	}
	switch {
	case s.expires != 0:
		j["expires_at"] = now.Add(s.expires).Format(time.RFC3339Nano)
	case s.changed("expires-in"):
		j["expires_in_s"] = 0
	}
	return j, nil
}

func (s *submission) runAt(now time.Time) (time.Time, error) {
	switch {
	case s.at != "" && s.in != 0:
		return time.Time{}, UsageError(errors.New("--at and --in exclude each other"))
	case s.in != 0:
		return now.Add(s.in), nil
	case s.at == "":
		return time.Time{}, nil
	}
	return parseTime(s.at, now, 1)
}

// ParsePast reads a time in the forms that people type. A duration is counted back from now.
func ParsePast(text string, now time.Time) (time.Time, error) { return parseTime(text, now, -1) }

// parseTime reads a time in the forms that people type. A duration, such as 90m or 2d, is counted from now: into the
// future with the sign 1, into the past with -1.
func parseTime(text string, now time.Time, sign time.Duration) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	if d, err := schema.ParseSpan(text); err == nil {
		return now.Add(sign * d), nil
	}
	return time.Time{}, UsageError(fmt.Errorf(
		"%q is not a time: expected RFC 3339, \"2006-01-02 15:04\" in local time, or a span such as 90m or 2d", text))
}

// setBody sends a JSON array as arguments and anything else unchanged.
func setBody(j map[string]any, body []byte) {
	var args []json.RawMessage
	trimmed := bytes.TrimSpace(body)
	switch {
	case len(trimmed) > 0 && trimmed[0] == '[' && json.Unmarshal(trimmed, &args) == nil:
		j["args"] = json.RawMessage(trimmed)
	case utf8.Valid(body):
		j["body"] = string(body)
	default:
		j["body_base64"] = base64.StdEncoding.EncodeToString(body)
	}
}

// bodyOf is the BODY argument, or standard input if it is "-".
func bodyOf(cmd *cobra.Command, arg string) ([]byte, error) {
	if arg != "-" {
		return []byte(arg), nil
	}
	body, err := io.ReadAll(cmd.InOrStdin())
	return body, Failed(err)
}

func pushCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "push QUEUE BODY",
		Short: "submit a job and print its id",
		Long: "Submit a job and print its id, once the job is durable. A BODY that is a JSON array becomes the job's arguments;\n" +
			"anything else is its raw body. - reads it from standard input.",
		Example: "  broker push emails '[\"ann@example.com\", 7]' --type SendEmail --retries 5\n" +
			"  broker push resize - <photo.jpg\n  broker push report '' --at '2030-01-31 06:00'\n  seq 100000 | broker push numbers - --lines",
		Args: cobra.ExactArgs(2),
	}
	conn, out, sub := addConnection(cmd), addFormat(cmd), addSubmission(cmd)
	lines := cmd.Flags().Bool("lines", false, "submit each line of the body as a separate job")
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		if *lines {
			return pushLines(cmd, c, sub, args, *out)
		}
		body, err := bodyOf(cmd, args[1])
		if err != nil {
			return err
		}
		request, err := sub.job(args[0], body, time.Now())
		if err != nil {
			return err
		}
		var j service.Job
		raw, err := c.submit(cmd.Context(), nil, request, &j)
		if err != nil {
			return err
		}
		return printAnswer(cmd, *out, raw, "%s", j.ID)
	})
	return cmd
}

// pushLines submits a job for each line, many with one request.
func pushLines(cmd *cobra.Command, c *client, sub *submission, args []string, out format) error {
	var input io.Reader = strings.NewReader(args[1])
	if args[1] == "-" {
		input = cmd.InOrStdin()
	}
	scanner := bufio.NewScanner(input)
	scanner.Buffer(nil, 1<<26)
	pushed := 0
	for more := true; more; {
		var jobs []map[string]any
		for len(jobs) < pushBatch {
			if more = scanner.Scan(); !more {
				break
			}
			j, err := sub.job(args[0], scanner.Bytes(), time.Now())
			if err != nil {
				return err
			}
			jobs = append(jobs, j)
		}
		if len(jobs) == 0 {
			break
		}
		raw, err := c.submit(cmd.Context(), nil, map[string]any{"jobs": jobs}, nil)
		if err != nil {
			return fmt.Errorf("after %s: %w", plural(pushed, "job"), err)
		}
		pushed += len(jobs)
		if out == formatJSON {
			if err := printJSON(cmd.OutOrStdout(), raw); err != nil {
				return err
			}
		}
	}
	if err := scanner.Err(); err != nil {
		return Failed(fmt.Errorf("after %s: %w", plural(pushed, "job"), err))
	}
	if out == formatTable {
		return printLine(cmd, "%s", plural(pushed, "job")+" submitted")
	}
	return nil
}
