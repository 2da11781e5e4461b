package main

import (
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // schedules name zones, also where the host knows none

	"github.com/rs/zerolog"

	"broker/config"
	"broker/core"
	"broker/core/engine"
	"broker/core/notify"
	"broker/frontends/cron"
	"broker/frontends/faktory"
)

// How long the timetable sleeps: at most so long, because the clock of the day may be set while the timer's goes on.
const (
	maxSchedulerSleep = 5 * time.Second
	minSchedulerSleep = time.Millisecond
)

// readSettings reads all sources and looks at what package config knows nothing of.
func readSettings(sources config.Sources) (config.Config, error) {
	c, err := config.Load(sources)
	if err != nil {
		return c, err
	}
	var errs []error
	for i, entry := range c.Crons {
		if err := faktory.CheckUnit(entry.Unit); err != nil {
			errs = append(errs, config.Problem{Setting: fmt.Sprintf("cron[%d].job", i), Text: err.Error()})
		}
	}
	return c, errors.Join(errs...)
}

// timetable runs the cron entries of the settings.
type scheduler struct {
	table   *cron.Table
	now     func() core.Instant
	log     zerolog.Logger
	changed notify.Signal
	stopped chan struct{} // closed by stop
	done    chan struct{} // closed by the goroutine
}

// startScheduler begins to submit jobs.
func startScheduler(e *engine.Engine, f *faktory.Frontend, log zerolog.Logger, entries []config.Cron) *scheduler {
	t := &scheduler{
		now: e.Now, log: log,
		changed: notify.NewSignal(), stopped: make(chan struct{}), done: make(chan struct{}),
	}
	t.table = cron.New(cron.Options{Broker: e, Prepare: f.Prepare, Listener: cronLog{log}})
	t.load(entries)
	go t.run()
	return t
}

// load puts other entries into force.
func (t *scheduler) load(entries []config.Cron) {
	all := make([]cron.Entry, len(entries))
	for i, c := range entries {
		schedule, err := config.ParseSchedule(c.Schedule, time.Local)
		if err != nil {
			panic(err) // validation has let through none but good ones
		}
		all[i] = cron.Entry{Spec: c.Schedule, Schedule: schedule, Type: c.Type, Queue: c.Queue, Unit: c.Unit}
	}
	if c := t.table.Load(all); c.Added+c.Removed > 0 {
		t.log.Info().Int("added", c.Added).Int("removed", c.Removed).Int("kept", c.Kept).Msg("cron entries changed")
	}
	t.changed.Set()
}

// run calls the table when it wants to be called.
func (t *scheduler) run() {
	defer close(t.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-t.stopped:
			return
		case <-t.changed:
		case <-timer.C:
		}
		if next := t.table.Tick(); next != 0 {
			timer.Reset(min(max(next.Sub(t.now()), minSchedulerSleep), maxSchedulerSleep))
		}
	}
}

// stop waits until nothing is submitted any more. There may be no timetable yet.
func (t *scheduler) stop() {
	if t == nil {
		return
	}
	close(t.stopped)
	<-t.done
	t.table.Close()
}

// cronLog writes log lines of what the timetable tells.
type cronLog struct{ zerolog.Logger }

// Submitted implements cron.Listener.
func (l cronLog) Submitted(e cron.Entry, due core.Instant, seq uint64) {
	l.line(l.Debug(), e, due).Uint64("seq", seq).Msg("cron job submitted")
}

// Refused implements cron.Listener.
func (l cronLog) Refused(e cron.Entry, due core.Instant, err error) {
	line := l.Warn()
	if errors.Is(err, core.ErrNotUnique) {
		line = l.Info() // the entry asked for it
	}
	l.line(line, e, due).Err(err).Msg("cron job refused")
}

// Missed implements cron.Listener.
func (l cronLog) Missed(e cron.Entry, first core.Instant) {
	l.line(l.Warn(), e, first).Msg("cron jobs left out, they are too old")
}

func (l cronLog) line(line *zerolog.Event, e cron.Entry, due core.Instant) *zerolog.Event {
	return line.Str("schedule", e.Spec).Str("queue", e.Queue).Str("type", e.Type).Time("due", due.Time())
}
