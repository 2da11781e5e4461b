package service

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"broker/core"
	"broker/frontends/shared/tracecontext"
)

// Job is a job in the format of the API, the command line and the web pages. Empty members are left out.
type Job struct {
	ID          string     `json:"id" doc:"the client's own id, or the id that the broker made"`
	Alias       string     `json:"alias,omitempty" doc:"id for Workq clients, if it differs from id"`
	Seq         uint64     `json:"seq" doc:"number of the job, never reused"`
	Queue       string     `json:"queue"`
	QueueBytes  []byte     `json:"queue_base64,omitempty" doc:"the queue's name if it is not UTF-8"`
	Type        string     `json:"type" doc:"type of the job; the queue's name if the client gave none"`
	State       string     `json:"state" enum:"scheduled,blocked,ready,leased,retrying,done,dead"`
	Reason      string     `json:"reason,omitempty" enum:"worker,paused,draining,limit,order,time,jobs,batch,broken" doc:"the reason for the wait"`
	Failed      bool       `json:"failed,omitempty" doc:"it is kept after its end, and was not completed"`
	Wait        *Wait      `json:"wait,omitempty" doc:"explains the reason; only where one job is shown"`
	Behind      int        `json:"behind,omitempty" doc:"in an ordered queue: number of earlier jobs of its key that have not ended; only where one job is shown"`
	Key         string     `json:"key,omitempty" doc:"in an ordered queue: its key; only where one job is shown"`
	Priority    int64      `json:"priority" doc:"higher first; 0 is normal"`
	Origin      string     `json:"origin" enum:"protocol" doc:"protocol of its submission"`
	CreatedAt   *time.Time `json:"created_at,omitempty"`
	ReadyAt     *time.Time `json:"ready_at,omitempty" doc:"when it became ready"`
	RunAt       *time.Time `json:"run_at,omitempty" doc:"when a scheduled or retrying job becomes ready"`
	DiedAt      *time.Time `json:"died_at,omitempty"`
	ChangedAt   *time.Time `json:"changed_at,omitempty" doc:"when it entered its state"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty" doc:"time at which it is removed in any state"`
	StartBefore *time.Time `json:"start_before,omitempty" doc:"removed if no worker has leased it by then"`
	Deadline    *time.Time `json:"deadline,omitempty" doc:"time by which it should be done"`
	Late        bool       `json:"late,omitempty" doc:"it was not done by its deadline"`
	LeasedAt    *time.Time `json:"leased_at,omitempty"`
	LeaseUntil  *time.Time `json:"lease_until,omitempty"`
	CancelAt    *time.Time `json:"cancel_requested_at,omitempty" doc:"time at which its worker was asked to stop"`
	LeaseForS   float64    `json:"lease_for_s,omitempty" doc:"a worker's time to finish"`
	Worker      string     `json:"worker,omitempty" doc:"id of the worker that holds it"`
	HeldOver    string     `json:"held_over,omitempty" doc:"protocol of its worker, if known"`
	HeldFrom    string     `json:"held_from,omitempty" doc:"address of the connection that holds it"`
	Attempts    uint32     `json:"attempts"`
	MaxAttempts uint32     `json:"max_attempts,omitempty"`
	Fails       uint32     `json:"fails"`
	MaxFails    uint32     `json:"max_fails,omitempty" doc:"failures after which there is no further attempt"`
	MovedFrom   string     `json:"moved_from,omitempty" doc:"queue from which a redrive rule has moved it"`
	Tags        []string   `json:"tags,omitempty"`
	Traceparent string     `json:"traceparent,omitempty" doc:"W3C trace context of its submission"`
	Tracestate  string     `json:"tracestate,omitempty"`
	UniqueKey   string     `json:"unique_key,omitempty"`
	Parent      string     `json:"parent,omitempty" doc:"seq:N of the parent job"`
	After       []string   `json:"after,omitempty" doc:"seq:N of the jobs that had to be done first"`
	Waiting     []string   `json:"waiting_for,omitempty" doc:"the jobs in after that are not done yet"`
	Batch       string     `json:"batch,omitempty"`
	Schedule    string     `json:"schedule,omitempty" doc:"the schedule that submitted it"`
	RerunOf     string     `json:"rerun_of,omitempty" doc:"the original of this copy: its id if one job is shown and the original still exists, else seq:N"`
	Broken      bool       `json:"broken,omitempty" doc:"blocked, and a job that it waits for was removed without being done"`
	Cost        uint32     `json:"cost,omitempty" doc:"how much a lease counts in limits; default 1"`
	Ephemeral   bool       `json:"ephemeral,omitempty" doc:"not stored; removed with its last waiting client"`
	Durability  string     `json:"durability,omitempty" enum:"none" doc:"none: in memory only, by a policy"`
	Watchers    int        `json:"watchers,omitempty" doc:"number of waiting clients"`
	Epoch       uint32     `json:"epoch" doc:"increases with each lease and change; also the ETag"`
	BodyBytes   int        `json:"body_bytes"`
	Progress    *Progress  `json:"progress,omitempty"`
	Failure     *Failure   `json:"failure,omitempty" doc:"the last failure"`
	Outcome     *Outcome   `json:"outcome,omitempty"`

	Version string `json:"worker_version,omitempty" doc:"for leased, retrying and dead jobs: version of the last worker's program, if it named one"`

	FailureGroup string `json:"failure_group,omitempty" doc:"for retrying and dead jobs: the error class, unless the failure has another group"`

	Damage string `json:"damage,omitempty" doc:"the reason why the store cannot read a part of it; no worker gets a damaged job"`

	Timeline []TimelineEntry `json:"timeline,omitempty" doc:"its events, for jobs with anything unusual"`

	Args       json.RawMessage `json:"args,omitempty" doc:"the body, if it is an array of arguments"`
	Body       *string         `json:"body,omitempty" doc:"the body, if it is any other text"`
	BodyBase64 []byte          `json:"body_base64,omitempty" doc:"the body, if it is not UTF-8"`
	Truncated  bool            `json:"body_truncated,omitempty" doc:"only the beginning of the body is shown"`
	Custom     json.RawMessage `json:"custom,omitempty" doc:"fields of the submitting protocol"`
}

// Progress is the progress of a job.
type Progress struct {
	Num       uint32     `json:"numerator"`
	Den       uint32     `json:"denominator"`
	Percent   *float64   `json:"percent,omitempty"`
	Text      string     `json:"text,omitempty"`
	UpdatedAt *time.Time `json:"updated_at,omitempty"`
}

// Failure is the last failure of a job.
type Failure struct {
	Type      string     `json:"type,omitempty" doc:"error class"`
	Message   string     `json:"message,omitempty"`
	Backtrace []string   `json:"backtrace,omitempty"`
	FailedAt  *time.Time `json:"failed_at,omitempty" doc:"the first failure"`
	NextAt    *time.Time `json:"next_at,omitempty" doc:"when the next attempt is due"`
	Count     uint32     `json:"count"`
	Group     string     `json:"group,omitempty"`
}

// Outcome describes the end of a job.
type Outcome struct {
	Success      bool     `json:"success"`
	Result       *string  `json:"result,omitempty" doc:"the worker's result, if it is text"`
	ResultBase64 []byte   `json:"result_base64,omitempty" doc:"the worker's result, if it is not UTF-8"`
	Truncated    bool     `json:"result_truncated,omitempty" doc:"only the beginning of the result is shown"`
	Cause        string   `json:"cause" enum:"finished,lease_ran_out,expired,cancelled"`
	Failure      *Failure `json:"failure,omitempty"`
}

// maxShown is the maximum part of a body or result that a view of a job shows. A lease and an awaited outcome contain
// all of it.
const maxShown = 1 << 20

// viewOf makes the view of a job. The submitted job may be unknown.
func (s *Service) viewOf(info *core.JobInfo) Job {
	v := Job{
		ID: core.MintedID(info.Seq, info.CreatedAt), Seq: info.Seq, Type: text(cmp.Or(info.Type, info.Queue)),
		State: info.State.String(), Priority: info.Priority, Origin: info.Origin.String(),
		CreatedAt: timeOf(info.CreatedAt), ChangedAt: timeOf(info.ChangedAt), ExpiresAt: timeOf(info.ExpiresAt),
		LeasedAt: timeOf(info.LeasedAt), LeaseUntil: timeOf(info.LeaseUntil), CancelAt: timeOf(info.CancelRequestedAt),
		Worker:   info.Worker,
		Attempts: info.Attempts, MovedFrom: text(info.MovedFrom), Fails: info.Fails, Broken: info.Broken,
		Ephemeral: info.Ephemeral,
		Watchers:  info.Watchers, Epoch: info.Epoch, BodyBytes: info.BodyBytes,
	}
	if info.HeldOver != core.Internal {
		v.HeldOver, v.HeldFrom = info.HeldOver.String(), info.HeldFrom
	}
	if info.Unstored {
		v.Durability = "none"
	}
	v.Queue, v.QueueBytes = textOrBytes(info.Queue)
	v.setTime(info.State, info.ReadyAt)
	v.FailureGroup, v.Version = text(info.FailureGroup), text(info.Version)
	v.Damage = text(info.Damage)
	if info.Reason != core.WaitNone {
		v.Reason = info.Reason.String()
	}
	v.Failed = info.DoneFailed
	v.Behind, v.Key = info.Behind, text(info.Key)
	for _, seq := range info.Waiting {
		v.Waiting = append(v.Waiting, seqName(seq))
	}
	v.Traceparent, v.Tracestate = tracecontext.Split(info.Trace)
	if info.Job != nil {
		s.setJob(&v, info.Job)
		ended := core.Instant(0)
		if info.State == core.Done {
			ended = info.ChangedAt
		}
		v.Late = info.Job.IsLate(ended, s.Now())
	}
	if !core.IsUUIDv4(v.ID) {
		v.Alias = core.Alias(info.Seq)
	}
	if p := info.Progress; p.UpdatedAt != 0 {
		v.Progress = &Progress{Num: p.Num, Den: p.Den, Text: text(p.Text), UpdatedAt: timeOf(p.UpdatedAt)}
		if p.Den > 0 {
			percent := 100 * float64(p.Num) / float64(p.Den)
			v.Progress.Percent = &percent
		}
	}
	v.Failure = failureOf(info.Failure)
	if info.Outcome != nil {
		v.Outcome = outcomeOf(info.Outcome)
	}
	return v
}

// setTime stores JobInfo.ReadyAt in the member for the job's state.
func (v *Job) setTime(state core.State, at core.Instant) {
	switch state {
	case core.Scheduled, core.Retrying:
		v.RunAt = timeOf(at)
	case core.Dead:
		v.DiedAt = timeOf(at)
	case core.Ready, core.Leased, core.Done, core.Blocked, core.Gone:
		v.ReadyAt = timeOf(at)
	}
}

// Term is a time that a job has in the future, or had, with the words for people.
type Term struct {
	Name string // in lower case
	At   *time.Time
	Note string // empty: nothing remarkable
}

// Terms are the times by which something happens to the job or should, in the order in which they are shown.
func (v *Job) Terms() []Term {
	deadline := Term{Name: "deadline", At: v.Deadline}
	if v.Late {
		deadline.Note = "late"
	}
	return slices.DeleteFunc([]Term{
		{Name: "due", At: v.RunAt}, {Name: "start before", At: v.StartBefore}, deadline, {Name: "expires", At: v.ExpiresAt},
	}, func(t Term) bool { return t.At == nil })
}

// Title is the name with a capital letter.
func (t Term) Title() string { return strings.ToUpper(t.Name[:1]) + t.Name[1:] }

// setJob adds the submitted members, without the body.
func (s *Service) setJob(v *Job, job *core.Job) {
	v.ID, v.LeaseForS, v.Tags = text(job.Identity()), job.LeaseFor.Seconds(), job.Tags
	if job.Type != "" {
		v.Type = text(job.Type)
	}
	v.Cost, v.Schedule = job.Cost, text(job.Schedule)
	v.MaxAttempts, v.MaxFails, v.StartBefore = job.MaxAttempts, job.MaxFails, timeOf(job.StartBefore)
	if job.Unique != core.UniqueNone {
		v.UniqueKey = text(job.UniqueKey)
	}
	if job.Parent != 0 {
		v.Parent = seqName(job.Parent)
	}
	for _, seq := range job.After {
		v.After = append(v.After, seqName(seq))
	}
	v.Batch = s.batchName(job.Batch)
	rare := job.Rares()
	v.Deadline = timeOf(rare.Deadline)
	if rare.RerunOf != 0 {
		v.RerunOf = seqName(rare.RerunOf)
	}
	v.Traceparent, v.Tracestate = tracecontext.Split(job.Trace)
}

// showBody adds the body in the member for its format, at most limit bytes.
func (v *Job) showBody(job *core.Job, limit int) {
	body := job.Body
	switch {
	case job.Format == core.Args && len(body) <= limit && json.Valid(body):
		v.Args = body
	case utf8.Valid(body):
		shown := cutText(body, limit)
		v.Body, v.Truncated = &shown, len(shown) < len(body)
	default:
		v.BodyBase64, v.Truncated = body[:min(len(body), limit)], len(body) > limit
	}
	if len(job.Attributes) <= limit && json.Valid(job.Attributes) {
		v.Custom = job.Attributes
	}
}

// cutText cuts a text between two characters.
func cutText(b []byte, limit int) string {
	if len(b) <= limit {
		return string(b)
	}
	for limit > 0 && !utf8.RuneStart(b[limit]) {
		limit--
	}
	return string(b[:limit])
}

func failureOf(f *core.Failure) *Failure {
	if f == nil {
		return nil
	}
	return &Failure{
		Type: text(f.Type), Message: text(f.Message), FailedAt: timeOf(f.FailedAt), NextAt: timeOf(f.NextAt),
		Count: f.Count, Group: f.Group,
	}
}

// outcomeOf shows an outcome with its whole result.
func outcomeOf(o *core.Outcome) *Outcome {
	v := &Outcome{Success: o.Success, Cause: causeNames[o.Cause], Failure: failureOf(o.Failure)}
	if utf8.Valid(o.Result) {
		result := string(o.Result)
		v.Result = &result
	} else {
		v.ResultBase64 = o.Result
	}
	return v
}

// cut limits the size of the result.
func (o *Outcome) cut(limit int) {
	if o.Result != nil && len(*o.Result) > limit {
		shown := cutText([]byte(*o.Result), limit)
		o.Result, o.Truncated = &shown, true
	}
	if len(o.ResultBase64) > limit {
		o.ResultBase64, o.Truncated = o.ResultBase64[:limit], true
	}
}

var causeNames = map[core.Cause]string{
	core.Finished: "finished", core.LeaseRanOut: "lease_ran_out", core.Expired: "expired", core.Cancelled: "cancelled",
}

func seqName(seq uint64) string { return "seq:" + strconv.FormatUint(seq, 10) }

// text makes s valid UTF-8 for JSON by replacing invalid bytes.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// textOrBytes returns a name as text, and also as bytes if it is not UTF-8.
func textOrBytes(name string) (string, []byte) {
	if utf8.ValidString(name) {
		return name, nil
	}
	return text(name), []byte(name)
}
