package machine_test

import (
	"fmt"
	"strings"

	"broker/core"
)

func (r *reader) scheduleOp(verb string, tag uint64) core.Op {
	name := r.Word(2)
	switch verb {
	case "put-schedule":
		s := core.Schedule{
			Name: name, Cron: r.Option("cron"), Zone: r.Option("zone"), Every: r.span("every"),
			Offset:  r.span("offset"),
			Backlog: int(r.number("backlog")), MaxMissed: int(r.number("max-missed")), Paused: r.flag("paused"),
			FromConfig: r.flag("from-config"), NextAt: r.instant("next"),
			Missed: map[string]core.Missed{
				"": core.MissedSkip, "one": core.MissedOne, "all": core.MissedAll,
			}[r.Option("missed")],
		}
		if !r.flag("no-job") {
			s.Job = r.job(r.Word(3))
			s.Job.ReadyAt, s.Job.ExpiresAt = core.Instant(0).Add(r.span("delay")), core.Instant(0).Add(r.span("ttl"))
		}
		return &core.PutSchedule{
			Tag: tag, Schedule: s, Create: r.flag("create"), Revision: uint64(r.number("revision")),
		}
	case "pause-schedule", "resume-schedule":
		return &core.PauseSchedule{Tag: tag, Name: name, Paused: verb == "pause-schedule"}
	case "remove-schedule":
		return &core.RemoveSchedule{Tag: tag, Name: name, FromConfig: r.flag("from-config")}
	case "run-schedule":
		return &core.RunSchedule{Tag: tag, Name: name, UpTo: r.instant("up-to"), Limit: int(r.number("limit"))}
	}
	return &core.ListSchedules{
		Tag: tag, Prefix: r.Option("prefix"), After: r.Option("after"), Limit: int(r.number("limit")),
	}
}

// schedules prints schedules.
func (p *player) schedules(rows []core.Schedule) string {
	if len(rows) == 0 {
		return "none"
	}
	lines := make([]string, len(rows))
	for i, s := range rows {
		times := s.Cron
		if s.Every != 0 {
			times = fmt.Sprintf("every %v", s.Every)
		}
		lines[i] = fmt.Sprintf("%s (%s) next=%s last=%s job=%d runs=%d revision=%d", s.Name, times, p.at(s.NextAt),
			p.at(s.LastAt),
			s.LastSeq, s.Runs, s.Revision)
		if s.Paused {
			lines[i] += " paused"
		}
		for _, run := range s.Recent {
			lines[i] += "\n" + p.recentRun(&run)
		}
	}
	return strings.Join(lines, "\n")
}

// recentRun prints a run that a schedule remembers.
func (p *player) recentRun(r *core.RecentRun) string {
	text := "- of " + p.at(r.DueAt)
	if r.DueAt == 0 {
		text = "- asked for"
	}
	text += " at " + p.at(r.At) + ": " + [...]string{
		"job " + fmt.Sprint(r.Seq), "refused", "missed", "backlogged",
	}[r.Result]
	if r.StartedAt != 0 {
		text += " started " + p.at(r.StartedAt)
	}
	if r.End != 0 {
		text += " " + r.End.String() + " at " + p.at(r.EndedAt)
	}
	return text
}

// runs prints the reports of runs.
func (p *player) runs() {
	for _, r := range p.m.ScheduleRuns() {
		switch r.Result {
		case core.RunSubmitted:
			p.say("%s of %s: job %d", r.Name, p.at(r.DueAt), r.Seq)
		case core.RunRefused:
			p.say("%s of %s: %v", r.Name, p.at(r.DueAt), r.Err)
		case core.RunMissed:
			p.say("%s of %s: missed", r.Name, p.at(r.DueAt))
		case core.RunBacklogged:
			p.say("%s of %s: backlogged", r.Name, p.at(r.DueAt))
		}
	}
}
