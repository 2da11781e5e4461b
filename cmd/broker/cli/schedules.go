package cli

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"broker/operate/service"
)

// lastRuns is the number of runs that the list of schedules shows.
const lastRuns = 10

// runStrip shows how the last runs ended, the newest last.
func runStrip(s *service.Schedule) string {
	marks := ""
	for _, r := range s.Recent[max(0, len(s.Recent)-lastRuns):] {
		switch {
		case r.Outcome == "done":
			marks += "✓"
		case r.Outcome == "failed" || r.Outcome == "dead":
			marks += "✗"
		case r.Outcome == "" && r.Result == "submitted":
			marks += "…"
		case r.Result == "refused":
			marks += "!"
		default: // it was left out, or removed before its end
			marks += "-"
		}
	}
	return marks
}

// ruleOf says when a schedule runs.
func ruleOf(s *service.Schedule) string {
	text := s.Cron
	if text == "" {
		text = "every " + span(seconds(s.EveryS))
	}
	if s.Zone != "" {
		text += " " + s.Zone
	}
	return text
}

func schedulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "schedules", Short: "list schedules and change them",
		Example: "  broker schedules\n  broker schedules add nightly reports '[]' --cron '0 3 * * *' --zone Europe/Berlin\n  broker schedules pause nightly",
	}
	header := []string{"NAME", "WHEN", "QUEUE", "TYPE", "NEXT", "LAST", "RUNS", "STATE"}
	listCommand(cmd, "schedules", "schedules", header, func(s *service.Schedule) []string {
		return []string{
			oneLine(s.Name, 40), ruleOf(s), oneLine(s.Queue, 40), oneLine(s.Type, 40), local(s.NextAt), local(s.LastAt),
			runStrip(s), mark(s.Paused, "paused"),
		}
	})
	cmd.AddCommand(
		addScheduleCommand(),
		scheduleCommand("pause", "paused", "stop the runs of schedules", http.MethodPost, "/pause"),
		scheduleCommand("resume", "resumed", "continue the runs of paused schedules", http.MethodPost, "/resume"),
		scheduleCommand("run", "submitted", "submit the jobs of schedules now", http.MethodPost, "/run"),
		scheduleCommand("rm", "removed", "remove schedules", http.MethodDelete, ""),
	)
	return cmd
}

// addScheduleCommand makes a schedule from the flags of push.
func addScheduleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add NAME QUEUE BODY",
		Short: "add a schedule, or replace it with --replace",
		Long: "Submit a job repeatedly, by --cron or --every. BODY and the flags of the job are the same as for broker push.\n" +
			"Without --zone, cron times are in UTC.",
		Example: "  broker schedules add nightly reports '[]' --cron '0 3 * * *' --zone Europe/Berlin\n" +
			"  broker schedules add ping health '' --every 30s --retries 0",
		Args: cobra.ExactArgs(3),
	}
	conn, out, sub := addConnection(cmd), addFormat(cmd), addSubmission(cmd)
	for _, name := range []string{"at", "in", "id"} { // for single jobs only, not for schedules
		_ = cmd.Flags().MarkHidden(name) // exists
	}
	flags := cmd.Flags()
	cron := flags.String("cron", "", "`WHEN` it runs: five fields of crontab, or six with seconds first")
	zone := flags.String("zone", "", "time `ZONE` of --cron, such as Europe/Berlin")
	every := flags.Duration("every", 0, "in place of --cron: the interval")
	missed := flags.String("missed", "", "runs that were missed: skip, one or all")
	replace := flags.Bool("replace", false, "replace a schedule of this name")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case sub.at != "" || sub.in != 0 || sub.id != "":
			return UsageError(errors.New("--at, --in and --id are for single jobs"))
		case (*cron == "") == (*every == 0):
			return UsageError(errors.New("expected --cron or --every"))
		case *every < 0:
			return UsageError(errors.New("--every: expected more than 0"))
		}
		c, err := conn.open()
		if err != nil {
			return err
		}
		body, err := bodyOf(cmd, args[2])
		if err != nil {
			return err
		}
		job, err := sub.job(args[1], body, time.Now())
		if err != nil {
			return err
		}
		if sub.expires > 0 { // counted from each run
			delete(job, "expires_at")
			job["expires_in_s"] = sub.expires.Seconds()
		}
		change := map[string]any{"name": args[0], "job": job}
		for name, text := range map[string]string{"cron": *cron, "zone": *zone, "missed": *missed} {
			if text != "" {
				change[name] = text
			}
		}
		if *every > 0 {
			change["every_s"] = every.Seconds()
		}
		method, path := http.MethodPost, "schedules"
		if *replace {
			method, path = http.MethodPut, "schedules/"+url.PathEscape(args[0])
		}
		var s service.Schedule
		raw, err := c.call(cmd.Context(), method, path, nil, change, &s)
		if err != nil {
			return err
		}
		return printAnswer(cmd, *out, raw, "%s runs next at %s", s.Name, local(s.NextAt))
	}
	return cmd
}

// scheduleCommand changes schedules by name. done is the message for each.
func scheduleCommand(name, done, short, method, suffix string) *cobra.Command {
	return eachChange{name + " NAME...", short, "schedule ", done, func(schedule string) (string, string) {
		return method, "schedules/" + schedule + suffix
	}}.command()
}
