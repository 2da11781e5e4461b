package gearmand

import (
	"cmp"
	"fmt"
	"io"
	"log/syslog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"broker/cmd/broker/cli"
)

// logFile is a file that can be reopened after a log rotation.
type logFile struct {
	path string
	mu   sync.Mutex // guards file
	file *os.File
}

// openLogFile opens path for appending.
func openLogFile(path string) (*logFile, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	l := &logFile{path: path}
	return l, l.reopen()
}

// reopen closes the file and opens its path again.
func (l *logFile) reopen() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close() // writes are not buffered
	}
	l.file = f
	return nil
}

// Write implements io.Writer.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Write(p)
}

// openLog creates the logger according to the options.
func (g *launcher) openLog() error {
	o := g.options
	var writers []io.Writer
	if o.has("syslog") {
		w, err := syslog.New(syslog.LOG_DAEMON|syslog.LOG_INFO, "gearmand")
		if err != nil {
			_, _ = fmt.Fprintf(os.Stderr, "gearmand: could not open syslog: %v\n", err) // the broker works without it
		} else {
			writers = append(writers, zerolog.SyslogLevelWriter(w))
		}
	}
	if !o.has("syslog") || o.has("log-file") {
		w, err := g.openLogTarget(cmp.Or(o["log-file"], defaultLogFile))
		if err != nil {
			return err
		}
		writers = append(writers, w)
	}
	zerolog.TimeFieldFormat = time.RFC3339Nano
	level, err := zerolog.ParseLevel(levels[cmp.Or(o["verbose"], "ERROR")])
	if err != nil {
		return err
	}
	g.log = zerolog.New(zerolog.MultiLevelWriter(writers...)).Level(level).With().Timestamp().Logger()
	return nil
}

// openLogTarget opens the target of --log-file. Like gearmand it falls back to standard error.
func (g *launcher) openLogTarget(name string) (io.Writer, error) {
	switch name {
	case "none":
		return io.Discard, nil
	case "stderr":
		return zerolog.ConsoleWriter{
			Out: os.Stderr, NoColor: !cli.IsTerminal(os.Stderr), TimeFormat: time.DateTime,
		}, nil
	}
	file, err := openLogFile(name)
	if err != nil {
		if g.options.has("log-file") {
			_, _ = fmt.Fprintf(os.Stderr, "gearmand: could not open log file %s, using stderr: %v\n", name, err)
		}
		return g.openLogTarget("stderr")
	}
	g.logFile = file
	return zerolog.ConsoleWriter{Out: file, NoColor: true, TimeFormat: time.DateTime}, nil
}

// reopenLog reopens the log file after a rotation.
func (g *launcher) reopenLog() error {
	if g.logFile == nil {
		return nil
	}
	return g.logFile.reopen()
}
