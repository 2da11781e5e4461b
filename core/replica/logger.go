package replica

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"slices"

	"github.com/hashicorp/go-hclog"
)

// logger writes messages of raft and of the node to Options.Log. The node logs the important events of raft itself. So
// raft's own messages get level debug, except its errors; errors that repeat while a member does not answer are debug
// messages too.
type logger struct {
	hclog.Logger // provides the methods that are not overridden; it writes nothing
	write        func(level slog.Level, text string, fields ...any)
}

func newLogger(write func(slog.Level, string, ...any)) *logger {
	return &logger{Logger: hclog.NewNullLogger(), write: write}
}

// forRaft returns the logger for raft.
func (l *logger) forRaft() hclog.Logger { return &raftLogger{logger: l} }

// Info, Warn and Error write a message with fields: names and values in turn.
func (l *logger) Info(text string, fields ...any)  { l.write(slog.LevelInfo, text, fields...) }
func (l *logger) Warn(text string, fields ...any)  { l.write(slog.LevelWarn, text, fields...) }
func (l *logger) Error(text string, fields ...any) { l.write(slog.LevelError, text, fields...) }

// raftLogger lowers the level of raft's messages.
type raftLogger struct{ *logger }

// repeated are errors that raft logs again and again while a member does not answer, has fallen behind the log, or is
// new. watchMembers reports once that a member does not answer.
var repeated = []string{
	"failed to heartbeat to", "failed to appendEntries to", "failed to pipeline appendEntries",
	"failed to start pipeline replication to",
	"failed to make requestVote RPC", "failed to decode incoming command", "failed to flush response",
	"failed to get log",
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
