package main

import (
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"

	"broker/config"
	"broker/core"
)

// newLogger writes to w as the settings say. The level is the program's, so that it can be changed.
func newLogger(c config.Log, w io.Writer) zerolog.Logger {
	zerolog.TimeFieldFormat = time.RFC3339Nano
	setLogLevel(c.Level)
	if c.Format == "console" || c.Format == "auto" && isTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.DateTime}
	}
	return zerolog.New(w).With().Timestamp().Logger()
}

// setLogLevel bounds what is written by any logger of the program.
func setLogLevel(name string) {
	level, err := zerolog.ParseLevel(name)
	if err != nil {
		level = zerolog.InfoLevel // validation has let through none but the known ones
	}
	zerolog.SetGlobalLevel(level)
}

// isTerminal reports that people read what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// logListener writes log lines of what the engine tells.
type logListener struct {
	core.NopListener
	log zerolog.Logger
}

// Recovered implements core.Listener.
func (l logListener) Recovered(jobs [len(core.States) + 1]int, took time.Duration) {
	line, total := l.log.Info(), 0
	for _, state := range core.States {
		line.Int(state.String(), jobs[state])
		total += jobs[state]
	}
	line.Int("jobs", total).Dur("took_ms", took).Msg("store is open")
}

// StoreWarning implements core.Listener.
func (l logListener) StoreWarning(text string) { l.log.Warn().Str("detail", text).Msg("store warns") }

// StoreFailed implements core.Listener.
func (l logListener) StoreFailed(err error) {
	l.log.Error().Err(err).Msg("store failed, no work is taken from now on")
}

// DiskFull implements core.Listener.
func (l logListener) DiskFull(reached bool, freeBytes uint64) {
	if reached {
		l.log.Error().Uint64("free_bytes", freeBytes).Msg("disk nearly full, new jobs are refused")
		return
	}
	l.log.Info().Uint64("free_bytes", freeBytes).Msg("disk has room again, new jobs are taken")
}

// ClockSet implements core.Listener.
func (l logListener) ClockSet(by time.Duration) {
	l.log.Warn().Stringer("by", by).Msg("the clock was set; leases and waits keep their length")
}

// listeners tells each of several.
type listeners []core.Listener

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
