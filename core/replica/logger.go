package replica

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"slices"

	"github.com/hashicorp/go-hclog"
)

// logger writes raft's messages, and ours, to Options.Log. What matters of raft's the node says itself, so all but its errors are debug
// messages, and so are those that repeat for as long as a member does not answer.
type logger struct {
	hclog.Logger // for what is not overridden; it writes nothing
	write        func(level slog.Level, text string, fields ...any)
}

func newLogger(write func(slog.Level, string, ...any)) *logger {
	return &logger{Logger: hclog.NewNullLogger(), write: write}
}

// forRaft is the logger that raft gets.
func (l *logger) forRaft() hclog.Logger { return &raftLogger{logger: l} }

// Info, Warn and Error write a message with fields: names and values in turn.
func (l *logger) Info(text string, fields ...any)  { l.write(slog.LevelInfo, text, fields...) }
func (l *logger) Warn(text string, fields ...any)  { l.write(slog.LevelWarn, text, fields...) }
func (l *logger) Error(text string, fields ...any) { l.write(slog.LevelError, text, fields...) }

// raftLogger lowers the level of raft's messages.
type raftLogger struct{ *logger }

// repeated are errors of raft that follow from a member that does not answer, which watchMembers reports once, or from one that has
// fallen behind the log or has just come.
var repeated = []string{
	"failed to heartbeat to", "failed to appendEntries to", "failed to pipeline appendEntries", "failed to start pipeline replication to",
	"failed to make requestVote RPC", "failed to decode incoming command", "failed to flush response", "failed to get log",
}

// Log implements hclog.Logger.
func (r *raftLogger) Log(level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	if level == hclog.Error && !slices.Contains(repeated, msg) {
		to = slog.LevelWarn
	}
	fields := make([]any, 0, len(args)+4)
	fields = append(fields, "detail", msg)
	for i := 0; i+1 < len(args); i += 2 {
		fields = append(fields, fmt.Sprint(args[i]), fmt.Sprint(args[i+1]))
	}
	r.write(to, "raft", fields...)
}

// Trace, Debug, Info, Warn and Error implement hclog.Logger.
func (r *raftLogger) Trace(msg string, args ...any) { r.Log(hclog.Trace, msg, args...) }
func (r *raftLogger) Debug(msg string, args ...any) { r.Log(hclog.Debug, msg, args...) }
func (r *raftLogger) Info(msg string, args ...any)  { r.Log(hclog.Info, msg, args...) }
func (r *raftLogger) Warn(msg string, args ...any)  { r.Log(hclog.Warn, msg, args...) }
func (r *raftLogger) Error(msg string, args ...any) { r.Log(hclog.Error, msg, args...) }

// With, Named and ResetNamed implement hclog.Logger.
func (r *raftLogger) With(...any) hclog.Logger       { return r }
func (r *raftLogger) Named(string) hclog.Logger      { return r }
func (r *raftLogger) ResetNamed(string) hclog.Logger { return r }
func (r *raftLogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(io.Discard, "", 0)
}
