package service

import (
	"context"
	"strconv"
	"time"

	"broker/access"
	"broker/core"
)

// LogLine is a line of the log of a job.
type LogLine struct {
	At      *time.Time `json:"at"`
	Text    string     `json:"text"`
	Missing uint32     `json:"missing,omitempty" doc:"number of lines left out here"`
}

// JobLog is a part of the log of a job.
type JobLog struct {
	Lines  []LogLine `json:"lines"`
	Cursor string    `json:"cursor" doc:"only read the lines after this cursor"`
	State  string    `json:"state" enum:"scheduled,blocked,ready,leased,retrying,done,dead" doc:"of the job before the lines were read"`
}

// AppendLog appends lines to the log of a leased job. Unlike a heartbeat it does not extend the lease.
func (s *Service) AppendLog(ctx context.Context, caller Caller, token string, lines []string) (LeaseState, error) {
	return s.keepLease(ctx, caller, token, func(t leaseToken) core.Op {
		return &core.AppendLog{
			Tag: reportTag, Ref: t.ref(), If: t.held(), Authority: core.ByLeased, Lines: lines,
		}
	})
}

// JobLog reads the log of a job: all kept lines, or the lines since another call returned cursor.
func (s *Service) JobLog(ctx context.Context, caller Caller, name, cursor string) (JobLog, error) {
	after, err := strconv.ParseUint(cursor, 10, 32)
	if err != nil && cursor != "" {
		return JobLog{}, invalid("cursor", "cursor is not one that this log has returned")
	}
	c := s.open(caller)
	defer c.Close()
	info, err := s.inspect(ctx, c, access.Read, name, true)
	if err != nil {
		return JobLog{}, err
	}
	reply, err := c.ask(&core.ReadDocuments{Prefix: core.LogPrefix(info.Seq)})
	if err != nil {
		return JobLog{}, err
	}
	chunks, err := core.DecodeLog(reply.Documents)
	if err != nil {
		return JobLog{}, err
	}
	log := JobLog{Lines: []LogLine{}, State: info.State.String()}
	for _, l := range core.LogLines(chunks, uint32(after)) {
		log.Lines = append(log.Lines, LogLine{At: timeOf(l.At), Text: text(l.Text), Missing: l.Missing})
		after = uint64(l.Number)
	}
	log.Cursor = strconv.FormatUint(after, 10)
	return log, nil
}
