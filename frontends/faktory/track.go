package faktory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"broker/core"
)

// track: TRACK GET jid | SET {jid, percent, desc, reserve_until}.
func (s *session) track(p *pipeline, arg []byte) {
	verb, rest, _ := bytes.Cut(arg, []byte{' '})
	switch sub := strings.ToUpper(string(verb)); sub {
	case "GET":
		s.trackGet(p, string(bytes.TrimSpace(rest)))
	case "SET":
		s.trackSet(rest)
	default:
		s.refuse("no such TRACK subcommand: " + sub)
	}
}

// trackGet answers with the state and progress of a job of any protocol.
func (s *session) trackGet(p *pipeline, jid string) {
	if jid == "" {
		s.refuse("missing JID")
		return
	}
	r := s.ask(&core.Inspect{Tag: s.NextTag(), Ref: core.Ref{ID: jid}, Brief: true})
	// only the store has the outcome
	if r.Kind == core.Inspected && r.Info.State == core.Done && r.Info.Outcome == nil {
		r = s.ask(&core.Inspect{Tag: s.NextTag(), Ref: core.Ref{ID: jid}})
	}
	if errors.Is(r.Err, core.ErrForbidden) {
		s.fail(r.Err, "", 0)
		return
	}
	p.json = append(p.json[:0], '{')
	p.json = appendTextMember(p.json, "jid", jid)
	if r.Kind != core.Inspected || !tracked(r.Info) { // updated_at must be empty for an unknown job
		p.json = append(p.json, `,"state":"unknown","updated_at":""}`...)
		s.bulk(p.json, r.Commit)
		return
	}
	info := r.Info
	p.json = appendTextMember(p.json, "state", trackState(info))
	p.json = appendInstantMember(p.json, "updated_at", min(updatedAt(info), s.front.broker.Now()))
	if done := &info.Progress; done.Den > 0 {
		p.json = appendIntegerMember(p.json, "percent", int64(done.Num)*100/int64(done.Den))
	}
	if info.Progress.Text != "" {
		p.json = appendTextMember(p.json, "desc", info.Progress.Text)
	}
	p.json = append(p.json, '}')
	s.bulk(p.json, r.Commit)
}

// tracked reports whether TRACK GET knows a job. Jobs from Faktory clients need custom.track or some progress.
func tracked(info *core.JobInfo) bool {
	return info.State != core.Gone && (info.Origin != core.Faktory || info.Kept || info.Progress.UpdatedAt != 0)
}

// updatedAt is when a job or its progress last changed.
func updatedAt(info *core.JobInfo) core.Instant {
	return max(info.ChangedAt, info.Progress.UpdatedAt, info.CreatedAt)
}

// trackState is the reference server's name for a job's state.
func trackState(info *core.JobInfo) string {
	switch info.State {
	case core.Scheduled, core.Blocked, core.Ready:
		return "enqueued"
	case core.Leased:
		return "working"
	case core.Retrying:
		return "failed"
	case core.Done:
		if info.Outcome != nil && !info.Outcome.Success {
			return "failed"
		}
		return "success"
	case core.Dead:
		return "dead"
	case core.Gone:
		return "unknown"
	}
	return "unknown"
}

// trackSet stores the progress of a job. Members missing in the request do not change.
func (s *session) trackSet(arg []byte) {
	set, err := parseTrackSet(arg)
	if err != nil {
		s.refuse(err.Error())
		return
	}
	r := s.ask(&core.Inspect{Tag: s.NextTag(), Ref: core.Ref{ID: set.JID}, Brief: true})
	if !s.granted(&r, set.JID) {
		return
	}
	report := &core.Report{
		Ref: core.Ref{Seq: r.Info.Seq}, Authority: core.ByAnyone,
		Progress: core.Progress{Num: r.Info.Progress.Num, Den: r.Info.Progress.Den, Text: r.Info.Progress.Text},
	}
	if set.Percent != nil {
		report.Progress.Num, report.Progress.Den = uint32(min(max(*set.Percent, 0), 100)), 100
	}
	if set.Desc != nil {
		report.Progress.Text = core.CutText(*set.Desc, maxMessage)
	}
	if !set.until.IsZero() {
		report.ExtendUntil = min(core.InstantOf(set.until), s.front.broker.Now().Add(maxReserve))
	}
	before := r.Info.Progress.Text
	report.Tag = s.NextTag()
	r = s.ask(report)
	if r.Kind == core.Failed {
		s.fail(r.Err, set.JID, r.Commit)
		return
	}
	if text := report.Progress.Text; text != "" && text != before {
		r.Commit = max(r.Commit, s.log(report.Ref, text))
	}
	s.ok(r.Commit)
}

// log appends a new description to the log of a job. Jobs that are not running or exist only in memory have no log;
// their progress is still set.
func (s *session) log(ref core.Ref, text string) core.Commit {
	r := s.ask(&core.AppendLog{Tag: s.NextTag(), Ref: ref, Authority: core.ByLeased, Lines: []string{text}})
	return r.Commit
}

// trackUpdate is the argument of TRACK SET; nil: absent.
type trackUpdate struct {
	JID          string  `json:"jid"`
	Percent      *int64  `json:"percent"`
	Desc         *string `json:"desc"`
	ReserveUntil string  `json:"reserve_until"`

	until time.Time
}

// parseTrackSet reads the argument of TRACK SET. The error is sent to the client.
func parseTrackSet(arg []byte) (set trackUpdate, err error) {
	if !utf8.Valid(arg) || json.Unmarshal(arg, &set) != nil {
		return set, fmt.Errorf("invalid TRACK SET %s", arg)
	}
	if set.JID == "" {
		return set, errors.New("missing JID")
	}
	if set.ReserveUntil != "" {
		if set.until, err = time.Parse(time.RFC3339Nano, set.ReserveUntil); err != nil {
			return set, fmt.Errorf("invalid timestamp for 'reserve_until': %q: %w", set.ReserveUntil, err)
		}
	}
	return set, nil
}
