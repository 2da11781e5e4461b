// Package zapcore has the types of go.uber.org/zap/zapcore that gnet names.
package zapcore

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap/buffer"
)

// Level says how important a message is. The numbers are those of the real package, since GNET_LOGGING_LEVEL contains one.
type Level int8

// The levels.
const (
	DebugLevel Level = iota - 1
	InfoLevel
	WarnLevel
	ErrorLevel
	DPanicLevel
	PanicLevel
	FatalLevel
)

var levelNames = [...]string{"debug", "info", "warn", "error", "dpanic", "panic", "fatal"}

// String returns the name of a level.
func (l Level) String() string {
	if l < DebugLevel || l > FatalLevel {
		return fmt.Sprintf("Level(%d)", int8(l))
	}
	return levelNames[l-DebugLevel]
}

// CapitalString returns the name of a level in capitals.
func (l Level) CapitalString() string { return strings.ToUpper(l.String()) }

// Enabled reports whether messages of a level are logged where l is the lowest one.
func (l Level) Enabled(level Level) bool { return level >= l }

// LevelEnabler decides which levels are logged.
type LevelEnabler interface{ Enabled(Level) bool }

// Entry is a message.
type Entry struct {
	Level   Level
	Time    time.Time
	Message string
}

// Field would be a key and a value; gnet logs none.
type Field struct{}

// Encoder makes a line of a message.
type Encoder interface {
	EncodeEntry(Entry, []Field) (*buffer.Buffer, error)
}

// TimeEncoder formats a time.
type TimeEncoder func(time.Time) string

// LevelEncoder formats a level.
type LevelEncoder func(Level) string

// RFC3339NanoTimeEncoder formats a time as RFC 3339 does, with nanoseconds.
func RFC3339NanoTimeEncoder(t time.Time) string { return t.Format(time.RFC3339Nano) }

// CapitalLevelEncoder formats a level in capitals.
func CapitalLevelEncoder(l Level) string { return l.CapitalString() }

// EncoderConfig says how lines look.
type EncoderConfig struct {
	EncodeTime  TimeEncoder
	EncodeLevel LevelEncoder
}

// NewConsoleEncoder returns an encoder whose lines have tabs between time, level and text.
func NewConsoleEncoder(c EncoderConfig) Encoder { return consoleEncoder(c) }

type consoleEncoder EncoderConfig

// EncodeEntry implements Encoder.
func (c consoleEncoder) EncodeEntry(e Entry, _ []Field) (*buffer.Buffer, error) {
	line := &buffer.Buffer{}
	line.AppendString(c.EncodeTime(e.Time) + "\t" + c.EncodeLevel(e.Level) + "\t" + e.Message + "\n")
	return line, nil
}

// WriteSyncer is where lines go.
type WriteSyncer interface {
	io.Writer
	Sync() error
}

// Lock lets several goroutines write to w.
func Lock(w WriteSyncer) WriteSyncer { return &locked{w: w} }

type locked struct {
	mu sync.Mutex // guards w
	w  WriteSyncer
}

// Write implements io.Writer.
func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// Sync implements WriteSyncer.
func (l *locked) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Sync()
}

// AddSync makes a WriteSyncer of a writer that has nothing to sync.
func AddSync(w io.Writer) WriteSyncer { return unsynced{w} }

type unsynced struct{ io.Writer }

// Sync implements WriteSyncer.
func (unsynced) Sync() error { return nil }

// Core is all parts of a logger.
type Core struct {
	Encoder Encoder
	Out     WriteSyncer
	Enabled LevelEnabler
}

// NewCore makes a Core.
func NewCore(e Encoder, out WriteSyncer, enabled LevelEnabler) Core { return Core{e, out, enabled} }
