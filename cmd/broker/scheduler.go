package main

import (
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // cron entries may name time zones that the host does not have

	"github.com/rs/zerolog"

	"broker/config"
	"broker/core"
	"broker/core/crontab"
	"broker/core/engine"
	"broker/core/notify"
	"broker/frontends/cron"
	"broker/frontends/faktory"
)

// How long the scheduler sleeps. The maximum is short because the wall clock may be set while the timer goes on.
const (
	maxSchedulerSleep = 5 * time.Second
	minSchedulerSleep = time.Millisecond
)

// readSettings reads all sources and checks what package config cannot check.
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

// scheduler submits the jobs of the cron entries.
type scheduler struct {
	table   *cron.Table
	now     func() core.Instant
	log     zerolog.Logger
	changed notify.Signal
	stopped chan struct{} // closed by stop
	done    chan struct{} // closed when run has ended
}

// startScheduler starts submitting jobs.
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

// load replaces the entries.
func (t *scheduler) load(entries []config.Cron) {
	all := make([]cron.Entry, len(entries))
	for i, c := range entries {
		schedule, err := crontab.Parse(c.Schedule, time.Local)
		if err != nil {
			panic(err) // the settings are validated
		}
		all[i] = cron.Entry{Spec: c.Schedule, Schedule: schedule, Type: c.Type, Queue: c.Queue, Unit: c.Unit}
	}
	if c := t.table.Load(all); c.Added+c.Removed > 0 {
		t.log.Info().Int("added", c.Added).Int("removed", c.Removed).Int("kept", c.Kept).Msg("cron entries changed")
	}
	t.changed.Set()
}

// run calls Tick whenever an entry is due.
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

// stop returns when nothing is submitted any more. The scheduler may be nil.
func (t *scheduler) stop() {
	if t == nil {
		return
	}
	close(t.stopped)
	<-t.done
	t.table.Close()
}

// cronLog logs the events of the cron table.
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
	l.line(l.Warn(), e, first).Msg("cron jobs skipped, too old")
}

func (l cronLog) line(line *zerolog.Event, e cron.Entry, due core.Instant) *zerolog.Event {
	return line.Str("schedule", e.Spec).Str("queue", e.Queue).Str("type", e.Type).Time("due", due.Time())
}
