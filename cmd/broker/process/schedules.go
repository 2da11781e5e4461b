package process

import (
	"fmt"
	_ "time/tzdata" // schedules may name time zones that the host does not have

	"github.com/rs/zerolog"

	"broker/config"
	"broker/core"
)

// scheduleLoader stores the cron entries of the configuration as schedules.
type scheduleLoader struct {
	broker   core.Broker
	template func(unit []byte) (*core.Job, error)
	log      zerolog.Logger
}

// load replaces the schedules of the configuration. Unchanged schedules keep their positions.
func (l *scheduleLoader) load(entries []config.Cron) {
	client := l.broker.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})
	defer l.broker.Close(client)
	ask := func(op core.Op) core.Reply { return l.broker.Do(client, []core.Op{op}, nil)[0] }
	old := make(map[string]core.Schedule)
	if r := ask(&core.ListSchedules{}); r.Answer != nil {
		for _, s := range r.Schedules {
			old[s.Name] = s
		}
	}
	added, changed := 0, 0
	twins := make(map[string]int)
	for i := range entries {
		c := &entries[i]
		s, err := l.schedule(c, twins)
		if err != nil {
			l.log.Error().Err(err).Str("name", s.Name).Msg("cron entry refused") // its route may have changed
			continue
		}
		before, known := old[s.Name]
		r := ask(&core.PutSchedule{Schedule: s})
		switch {
		case r.Kind == core.Failed:
			l.log.Error().Err(r.Err).Str("name", s.Name).Msg("cron entry refused")
		case !known:
			added++
		case before.Revision != r.Schedules[0].Revision:
			changed++
		}
		delete(old, s.Name)
	}
	removed := 0
	for name, s := range old {
		if s.FromConfig && ask(&core.RemoveSchedule{Name: name, FromConfig: true}).Kind == core.Accepted {
			removed++
		}
	}
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
		s.Name = c.Type + " " + c.Schedule
		if twins[s.Name]++; twins[s.Name] > 1 {
			s.Name += fmt.Sprintf(" (%d)", twins[s.Name])
		}
	}
	var err error
	s.Job, err = l.template(c.Unit)
	return s, err
}
