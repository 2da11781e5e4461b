package httpapi

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"broker/core"
)

// Sizes of answers.
const (
	usualPage    = 100
	largestPage  = 1000
	maxBodyShown = 1 << 20
)

// jobRow is a job as it is told. Members that say nothing are left out.
type jobRow struct {
	ID          string       `json:"id"`
	Alias       string       `json:"alias,omitempty"` // what Workq calls it, where that is something else
	Seq         uint64       `json:"seq"`             // the number in a Gearman handle
	Queue       string       `json:"queue"`
	Type        string       `json:"type"`
	Origin      string       `json:"origin"`
	State       string       `json:"state"`
	Priority    int32        `json:"priority"`
	CreatedAt   *time.Time   `json:"created_at"`
	ReadyAt     *time.Time   `json:"ready_at,omitempty"`
	ChangedAt   *time.Time   `json:"changed_at,omitempty"`
	ExpiresAt   *time.Time   `json:"expires_at,omitempty"`
	StartBefore *time.Time   `json:"start_before,omitempty"`
	LeasedAt    *time.Time   `json:"leased_at,omitempty"`
	LeaseUntil  *time.Time   `json:"lease_until,omitempty"`
	LeaseFor    float64      `json:"lease_for,omitempty"` // seconds
	Worker      string       `json:"worker,omitempty"`
	Attempts    uint32       `json:"attempts"`
	MaxAttempts uint32       `json:"max_attempts,omitempty"`
	Fails       uint32       `json:"fails"`
	MaxFails    uint32       `json:"max_fails,omitempty"`
	Parent      uint64       `json:"parent,omitempty"` // numbers of jobs
	After       []uint64     `json:"after,omitempty"`
	Broken      bool         `json:"broken,omitempty"`
	Ephemeral   bool         `json:"ephemeral,omitempty"`
	Watchers    int          `json:"watchers,omitempty"`
	Progress    *progressRow `json:"progress,omitempty"`
	Failure     *failureRow  `json:"failure,omitempty"`
	BodyBytes   int          `json:"body_bytes"`

	*jobDetail
}

// jobDetail is what only the answer about one job holds.
type jobDetail struct {
	Args       json.RawMessage `json:"args,omitempty"`
	Body       *string         `json:"body,omitempty"`
	Base64     []byte          `json:"body_base64,omitempty"`
	Truncated  bool            `json:"body_truncated,omitempty"`
	Attributes json.RawMessage `json:"attributes,omitempty"`
	Outcome    *outcomeRow     `json:"outcome,omitempty"`
}

// progressRow is how far a job is.
type progressRow struct {
	Done      uint32     `json:"numerator"`
	Of        uint32     `json:"denominator"`
	Text      string     `json:"text,omitempty"`
	UpdatedAt *time.Time `json:"updated_at,omitempty"`
}

// failureRow is the last failure of a job.
type failureRow struct {
	Type      string     `json:"type,omitempty"`
	Message   string     `json:"message,omitempty"`
	Backtrace []string   `json:"backtrace,omitempty"`
	FailedAt  *time.Time `json:"failed_at,omitempty"`
	NextAt    *time.Time `json:"next_at,omitempty"`
	Count     uint32     `json:"count"`
}

// outcomeRow is how a job ended whose result is kept.
type outcomeRow struct {
	Success bool    `json:"success"`
	Result  *string `json:"result,omitempty"`
	Base64  []byte  `json:"result_base64,omitempty"`
}

// jobs: GET /api/jobs?state=&queue=&cursor=&limit=
func (s *Server) jobs(a *asker, r *http.Request) (any, error) {
	q := r.URL.Query()
	op := &core.ListJobs{Queue: q.Get("queue")}
	if name := q.Get("state"); name != "" {
		i := slices.IndexFunc(core.States[:], func(st core.State) bool { return st.String() == name })
		if i < 0 {
			return nil, badOrder(fmt.Sprintf("state must be one of %v", core.States))
		}
		op.State = core.States[i]
	}
	cursor, err := number(q, "cursor", 0, math.MaxUint64)
	if err != nil {
		return nil, err
	}
	limit, err := number(q, "limit", usualPage, largestPage)
	if err != nil {
		return nil, err
	}
	if op.Limit = int(limit); limit == 0 {
		op.Limit = usualPage
	}
	// The two orders that the core has for lists: by place in one queue, or by number over all.
	ordered := op.Queue != "" && (op.State == core.Ready || op.State == core.Scheduled)
	if op.Cursor = cursor; ordered {
		op.Cursor, op.Offset = 0, int(min(cursor, math.MaxInt32))
	}
	reply, err := a.ask(op)
	if err != nil {
		return nil, err
	}
	rows := make([]jobRow, len(reply.Jobs))
	for i := range reply.Jobs {
		rows[i] = rowOfJob(&reply.Jobs[i], reply.Jobs[i].Job)
	}
	answer := map[string]any{"jobs": rows}
	if ordered && len(rows) == op.Limit {
		answer["cursor"] = uint64(op.Offset + len(rows))
	} else if !ordered && reply.Cursor != 0 {
		answer["cursor"] = reply.Cursor
	}
	return answer, nil
}

// job: GET /api/jobs/{id}
func (s *Server) job(a *asker, r *http.Request) (any, error) {
	reply, err := a.find(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	job := reply.Job
	if job == nil {
		job = reply.Info.Job
	}
	row := rowOfJob(reply.Info, job)
	row.jobDetail = &jobDetail{}
	if job != nil {
		row.tellBody(job)
		if json.Valid(job.Attributes) {
			row.Attributes = job.Attributes
		}
	}
	if row.Failure != nil {
		row.Failure.Backtrace = reply.Info.Failure.Backtrace
	}
	if o := reply.Info.Outcome; o != nil {
		row.Outcome = &outcomeRow{Success: o.Success}
		if result := o.Result[:min(len(o.Result), maxBodyShown)]; utf8.Valid(result) {
			text := string(result)
			row.Outcome.Result = &text
		} else {
			row.Outcome.Base64 = result
		}
	}
	return row, nil
}

// tellBody shows a body as what it is: arguments, text, or bytes.
func (d *jobDetail) tellBody(job *core.Job) {
	body := job.Body
	if d.Truncated = len(body) > maxBodyShown; d.Truncated {
		body = body[:maxBodyShown]
	}
	switch {
	case job.Format == core.Args && !d.Truncated && json.Valid(body):
		d.Args = body
	case utf8.Valid(body):
		text := string(body)
		d.Body = &text
	default:
		d.Base64 = body
	}
}

// find looks a job up by any of its names: its id, its alias, its number, or a Gearman handle.
func (a *asker) find(name string) (core.Reply, error) {
	reply, err := a.ask(&core.Inspect{Ref: core.Ref{ID: name}})
	if err == nil {
		return reply, nil
	}
	seq, numErr := strconv.ParseUint(name[strings.LastIndexByte(name, ':')+1:], 10, 64)
	if numErr != nil || seq == 0 {
		return reply, err
	}
	return a.ask(&core.Inspect{Ref: core.Ref{Seq: seq}})
}

// act: POST /api/jobs/{id}/requeue, kill or cancel.
func (s *Server) act(what string, op func(core.Ref) core.Op) func(a *asker, r *http.Request) (any, error) {
	return func(a *asker, r *http.Request) (any, error) {
		found, err := a.find(r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		if _, err := a.ask(op(core.Ref{Seq: found.Info.Seq})); err != nil {
			return nil, err
		}
		s.options.Log.Info().Uint64("seq", found.Info.Seq).Str("order", what).Msg("job changed over http")
		return map[string]any{"seq": found.Info.Seq}, nil
	}
}

// rowOfJob tells a job; what it was submitted as may be unknown.
func rowOfJob(info *core.JobInfo, job *core.Job) jobRow {
	row := jobRow{
		ID: core.MintedID(info.Seq, info.CreatedAt), Seq: info.Seq, Queue: info.Queue, Type: info.Queue,
		Origin: info.Origin.String(), State: info.State.String(), Priority: info.Priority,
		CreatedAt: instant(info.CreatedAt), ReadyAt: instant(info.ReadyAt), ChangedAt: instant(info.ChangedAt),
		ExpiresAt: instant(info.ExpiresAt), LeasedAt: instant(info.LeasedAt), LeaseUntil: instant(info.LeaseUntil),
		Worker: info.Worker, Attempts: info.Attempts, Fails: info.Fails, Broken: info.Broken,
		Ephemeral: info.Ephemeral, Watchers: info.Watchers,
	}
	if job != nil {
		row.ID, row.BodyBytes, row.LeaseFor = job.Identity(), len(job.Body), job.LeaseFor.Seconds()
		if job.Type != "" {
			row.Type = job.Type
		}
		row.MaxAttempts, row.MaxFails, row.StartBefore = job.MaxAttempts, job.MaxFails, instant(job.StartBefore)
		row.Parent, row.After = job.Parent, job.After
	}
	if !core.IsUUIDv4(row.ID) {
		row.Alias = core.Alias(info.Seq)
	}
	if p := info.Progress; p.UpdatedAt != 0 {
		row.Progress = &progressRow{p.Num, p.Den, p.Text, instant(p.UpdatedAt)}
	}
	if f := info.Failure; f != nil {
		row.Failure = &failureRow{
			Type: f.Type, Message: f.Message, FailedAt: instant(f.FailedAt), NextAt: instant(f.NextAt), Count: f.Count,
		}
	}
	return row
}
