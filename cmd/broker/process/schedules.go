package process

import (
	"cmp"
	"fmt"
	_ "time/tzdata" // schedules may name time zones that the host does not have

	"github.com/rs/zerolog"

	"broker/config"
	"broker/core"
	"broker/frontends/faktory"
)

// scheduleLoader stores the cron entries of the configuration as schedules.
type scheduleLoader struct {
	broker   core.Broker
	template func(*faktory.JobTemplate) (*core.Job, error)
	log      zerolog.Logger
}

// load replaces the schedules of the configuration. Unchanged schedules keep their positions.
func (l *scheduleLoader) load(entries []config.Cron) {
	client := l.broker.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})
	defer l.broker.Close(client)
	ask := func(op core.Op) core.Reply { return l.broker.Do(client, []core.Op{op}, nil)[0] }
	known, before := make(map[string]core.Schedule), make(map[string]core.Schedule)
	if r := ask(&core.ListSchedules{}); r.Answer != nil {
		for _, s := range r.Schedules {
			if known[s.Name] = s; s.FromConfig {
				before[s.Name] = s
			}
		}
	}
	after, twins := make(map[string]core.Schedule), make(map[string]int)
	for i := range entries {
		s, err := l.schedule(&entries[i], twins)
		if err != nil {
			l.log.Error().Err(err).Str("name", s.Name).Msg("cron entry refused") // its route may have changed
			continue
		}
		after[s.Name] = s
	}
	added, changed, removed := 0, 0, 0
	reconcile(before, after, cmp.Compare[string], func(name string, s core.Schedule, wanted bool) {
		if !wanted {
			if ask(&core.RemoveSchedule{Name: name, FromConfig: true}).Kind == core.Accepted {
				removed++
			}
			return
		}
		had, isKnown := known[name]
		switch r := ask(&core.PutSchedule{Schedule: s}); {
		case r.Kind == core.Failed:
			l.log.Error().Err(r.Err).Str("name", name).Msg("cron entry refused")
		case !isKnown:
			added++
		case had.Revision != r.Schedules[0].Revision: // the core compares what belongs to the settings
			changed++
		}
	})
	if added+changed+removed > 0 {
		l.log.Info().Int("added", added).Int("changed", changed).Int("removed", removed).Msg("cron entries changed")
	}
}

// schedule makes a schedule from an entry. An entry without a name is identified by its job's type and its times. twins
// counts equal entries.
func (l *scheduleLoader) schedule(c *config.Cron, twins map[string]int) (core.Schedule, error) {
	s := core.Schedule{
		Name: c.Name, Cron: c.Schedule, Zone: "Local", FromConfig: true,
		Missed: map[string]core.Missed{"one": core.MissedOne, "all": core.MissedAll}[c.Missed], Backlog: c.Backlog,
	}
	if s.Name == "" {
		s.Name = c.Job.Type + " " + c.Schedule
		if twins[s.Name]++; twins[s.Name] > 1 {
			s.Name += fmt.Sprintf(" (%d)", twins[s.Name])
		}
	}
	var err error
	s.Job, err = l.template(jobTemplate(&c.Job))
	return s, err
}

// jobTemplate is the job of an entry, which the front-end reads as if it were pushed.
func jobTemplate(j *config.CronJob) *faktory.JobTemplate {
	t := faktory.JobTemplate(*j)
	return &t
}
