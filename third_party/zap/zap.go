// Package zap has the functions of go.uber.org/zap that gnet calls to make its default logger. The broker gives gnet a logger of
// its own before it starts, so the real package's 0.4 MB never run. A logger of this package writes one line per message: time,
// level, text.
package zap

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/zap/zapcore"
)

// An Option is accepted, and changes nothing: lines have neither callers nor stack traces.
type Option struct{}

// Development is an Option.
func Development() Option { return Option{} }

// AddCaller is an Option.
func AddCaller() Option { return Option{} }

// AddStacktrace is an Option.
func AddStacktrace(zapcore.LevelEnabler) Option { return Option{} }

// ErrorOutput is an Option.
func ErrorOutput(zapcore.WriteSyncer) Option { return Option{} }

// LevelEnablerFunc decides which levels are logged.
type LevelEnablerFunc func(zapcore.Level) bool

// Enabled reports whether a level is logged.
func (f LevelEnablerFunc) Enabled(level zapcore.Level) bool { return f(level) }

// NewDevelopmentEncoderConfig returns an empty configuration.
func NewDevelopmentEncoderConfig() zapcore.EncoderConfig { return zapcore.EncoderConfig{} }

// NewProductionEncoderConfig returns an empty configuration.
func NewProductionEncoderConfig() zapcore.EncoderConfig { return zapcore.EncoderConfig{} }

// Logger writes to a core.
type Logger struct{ core zapcore.Core }

// New makes a logger.
func New(core zapcore.Core, _ ...Option) *Logger { return &Logger{core} }

// Sugar returns the logger with methods that format.
func (l *Logger) Sugar() *SugaredLogger { return &SugaredLogger{l.core} }

// Sync makes what was logged durable.
func (l *Logger) Sync() error { return l.core.Out.Sync() }

// SugaredLogger formats what it logs.
type SugaredLogger struct{ core zapcore.Core }

// Debugf logs at the debug level.
func (s *SugaredLogger) Debugf(format string, args ...any) { s.log(zapcore.DebugLevel, format, args) }

// Infof logs at the info level.
func (s *SugaredLogger) Infof(format string, args ...any) { s.log(zapcore.InfoLevel, format, args) }

// Warnf logs at the warn level.
func (s *SugaredLogger) Warnf(format string, args ...any) { s.log(zapcore.WarnLevel, format, args) }

// Errorf logs at the error level.
func (s *SugaredLogger) Errorf(format string, args ...any) { s.log(zapcore.ErrorLevel, format, args) }

// Fatalf logs at the fatal level and ends the program.
func (s *SugaredLogger) Fatalf(format string, args ...any) {
	s.log(zapcore.FatalLevel, format, args)
	os.Exit(1)
}

func (s *SugaredLogger) log(level zapcore.Level, format string, args []any) {
	if !s.core.Enabled.Enabled(level) {
		return
	}
	line, err := s.core.Encoder.EncodeEntry(zapcore.Entry{Level: level, Time: time.Now(), Message: fmt.Sprintf(format, args...)}, nil)
	if err == nil {
		_, _ = s.core.Out.Write(line.Bytes()) // where else would it be logged
	}
}
