package process

import (
	"errors"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"broker/cmd/broker/cli"
	"broker/config"
	"broker/core"
)

// NewLogger creates the logger that the settings describe. The level is global, so that it can be changed.
func NewLogger(c config.Log, w io.Writer) zerolog.Logger {
	zerolog.TimeFieldFormat = time.RFC3339Nano
	setLogLevel(c.Level)
	if c.Format == "console" || c.Format == "auto" && cli.IsTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.DateTime}
	}
	return zerolog.New(zerolog.MultiLevelWriter(w, &recentLog)).With().Timestamp().Logger()
}

// recentLog is the end of the log, for support bundles.
var recentLog logTail

// logTailBytes is the size of the kept end of the log.
const logTailBytes = 256 << 10

// logTail keeps the last lines of the log.
type logTail struct {
	mu    sync.Mutex // guards lines
	lines []byte
}

// Write implements io.Writer.
func (t *logTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, p...)
	if over := len(t.lines) - logTailBytes; over > logTailBytes { // rarely true, so that bytes are moved rarely
		t.lines = append([]byte(nil), t.lines[over:]...)
	}
	return len(p), nil
}

// WriteTo writes the kept lines.
func (t *logTail) WriteTo(w io.Writer) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := w.Write(t.lines[max(0, len(t.lines)-logTailBytes):])
	return int64(n), err
}

// setLogLevel sets the level of all loggers of the program.
func setLogLevel(name string) {
	level, err := zerolog.ParseLevel(name)
	if err != nil {
		level = zerolog.InfoLevel // the settings are validated
	}
	zerolog.SetGlobalLevel(level)
}

// logListener logs the engine's events.
type logListener struct {
	core.NopListener
	log zerolog.Logger
}

// StoreCreated implements core.Listener.
func (l logListener) StoreCreated(dir string) {
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	l.log.Info().Str("data", dir).Msg("made an empty store, as the folder had none")
}

// Recovered implements core.Listener.
func (l logListener) Recovered(jobs [len(core.States) + 1]int, took time.Duration) {
	line, total := l.log.Info(), 0
	for _, state := range core.States {
		line.Int(state.String(), jobs[state])
		total += jobs[state]
	}
	line.Int("jobs", total).Dur("took_ms", took).Msg("store opened")
}

// ScheduleRan implements core.Listener.
func (l logListener) ScheduleRan(r core.ScheduleRun) {
	level, text := zerolog.WarnLevel, "scheduled job refused"
	switch r.Result {
	case core.RunSubmitted:
		level, text = zerolog.DebugLevel, "scheduled job submitted"
	case core.RunRefused:
		if errors.Is(r.Err, core.ErrNotUnique) {
			level = zerolog.InfoLevel // the schedule asks for it
		}
	case core.RunMissed:
		text = "scheduled jobs skipped, too old"
	case core.RunBacklogged:
		level, text = zerolog.InfoLevel, "scheduled jobs skipped, backlog reached"
	}
	line := l.log.WithLevel(level)
	if r.Cron != "" {
		line.Str("schedule", r.Cron)
	} else {
		line.Stringer("every", r.Every)
	}
	line.Str("name", r.Name).Str("queue", r.Queue).Str("type", r.Type).Time("due", r.DueAt.Time())
	if r.Seq != 0 {
		line.Uint64("seq", r.Seq)
	}
	line.AnErr("error", r.Err).Msg(text)
}

// CommitSlow implements core.Listener.
func (l logListener) CommitSlow(after time.Duration) {
	l.log.Warn().Stringer("after", after).Msg("a commit has not reached the disk yet, clients wait for it")
}

// StoreWarning implements core.Listener.
func (l logListener) StoreWarning(text string) { l.log.Warn().Str("detail", text).Msg("store warning") }

// StoreFailed implements core.Listener.
func (l logListener) StoreFailed(err error) {
	l.log.Error().Err(err).Msg("store failed, no more work is accepted")
}

// JobDamaged implements core.Listener.
func (l logListener) JobDamaged(seq uint64, err error) {
	l.log.Error().Uint64("seq", seq).Err(err).Msg("job is damaged in the store, no worker gets it")
}

// DiskFull implements core.Listener.
func (l logListener) DiskFull(reached bool, freeBytes uint64) {
	if reached {
		l.log.Error().Uint64("free_bytes", freeBytes).Msg("disk nearly full, new jobs are refused")
		return
	}
	l.log.Info().Uint64("free_bytes", freeBytes).Msg("disk space is available again, new jobs are accepted")
}

// ClockSet implements core.Listener.
func (l logListener) ClockSet(by time.Duration) {
	l.log.Warn().Stringer("by", by).Msg("system clock changed, leases and timeouts keep their duration")
}

// listeners calls several listeners.
type listeners []core.Listener

// StoreCreated implements core.Listener.
func (ls listeners) StoreCreated(dir string) {
	for _, l := range ls {
		l.StoreCreated(dir)
	}
}

// Recovered implements core.Listener.
func (ls listeners) Recovered(jobs [len(core.States) + 1]int, took time.Duration) {
	for _, l := range ls {
		l.Recovered(jobs, took)
	}
}

// CommitDone implements core.Listener.
func (ls listeners) CommitDone(records int, took time.Duration) {
	for _, l := range ls {
		l.CommitDone(records, took)
	}
}

// ScheduleRan implements core.Listener.
func (ls listeners) ScheduleRan(r core.ScheduleRun) {
	for _, l := range ls {
		l.ScheduleRan(r)
	}
}

// CommitSlow implements core.Listener.
func (ls listeners) CommitSlow(after time.Duration) {
	for _, l := range ls {
		l.CommitSlow(after)
	}
}

// StoreWarning implements core.Listener.
func (ls listeners) StoreWarning(text string) {
	for _, l := range ls {
		l.StoreWarning(text)
	}
}

// StoreFailed implements core.Listener.
func (ls listeners) StoreFailed(err error) {
	for _, l := range ls {
		l.StoreFailed(err)
	}
}

// JobDamaged implements core.Listener.
func (ls listeners) JobDamaged(seq uint64, err error) {
	for _, l := range ls {
		l.JobDamaged(seq, err)
	}
}

// DiskFull implements core.Listener.
func (ls listeners) DiskFull(reached bool, freeBytes uint64) {
	for _, l := range ls {
		l.DiskFull(reached, freeBytes)
	}
}

// ClockSet implements core.Listener.
func (ls listeners) ClockSet(by time.Duration) {
	for _, l := range ls {
		l.ClockSet(by)
	}
}
