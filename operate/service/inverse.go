package service

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/schema"
)

// A change of a setting is an operation of the core. Its inverse is the operation of the same kind that sets what was
// there before: the audit log keeps it beside the entry, in the store, so that the change can be undone.

// undoFor is the time for which a change can be undone.
const undoFor = time.Hour

// maxInverse is the size of a stored inverse, in bytes. Changes with larger ones, such as of a schedule with a long
// body, cannot be undone.
const maxInverse = 4 << 10

// settingKinds are the operations that change settings.
var settingKinds = []reflect.Type{
	reflect.TypeFor[core.PauseQueue](), reflect.TypeFor[core.SetQueueMax](), reflect.TypeFor[core.PutLimit](),
	reflect.TypeFor[core.RemoveLimit](), reflect.TypeFor[core.ShareQueue](), reflect.TypeFor[core.PutPolicy](),
	reflect.TypeFor[core.PutSchedule](), reflect.TypeFor[core.PauseSchedule](), reflect.TypeFor[core.RemoveSchedule](),
}

// inverse is an operation in the store.
type inverse struct {
	Kind string          `json:"kind"`
	Op   json.RawMessage `json:"op"`
}

// inverseOf encodes an operation; nil if it cannot be kept.
func inverseOf(op core.Op) *inverse {
	text, err := json.Marshal(op)
	if err != nil || len(text) > maxInverse {
		return nil
	}
	i := &inverse{Kind: reflect.TypeOf(op).Elem().Name(), Op: text}
	if back, err := i.op(); err != nil || !reflect.DeepEqual(back, op) { // such as a name that is not UTF-8
		return nil
	}
	return i
}

// op decodes an operation. It refuses one of another version with an unknown kind or field: without that field it could
// set something else than what was there before.
func (i *inverse) op() (core.Op, error) {
	at := slices.IndexFunc(settingKinds, func(t reflect.Type) bool { return t.Name() == i.Kind })
	if at < 0 {
		return nil, fmt.Errorf("there is no setting %s", i.Kind)
	}
	op := reflect.New(settingKinds[at]).Interface().(core.Op)
	d := json.NewDecoder(bytes.NewReader(i.Op))
	d.DisallowUnknownFields()
	return op, d.Decode(op)
}

// presently returns the operation that sets what op would change to what it is now; nil if op changes no setting.
func presently(c *session, op core.Op) core.Op {
	switch op := op.(type) {
	case *core.PauseQueue:
		if r, err := c.ask(&core.InspectQueue{Queue: op.Queue}); err == nil {
			return &core.PauseQueue{Queue: op.Queue, Paused: r.Queues[0].Paused}
		}
	case *core.SetQueueMax:
		if r, err := c.ask(&core.InspectQueue{Queue: op.Queue}); err == nil {
			return &core.SetQueueMax{Queue: op.Queue, Max: r.Queues[0].Max}
		}
	case *core.PutLimit:
		return presentLimit(c, op.Limit.ID())
	case *core.RemoveLimit:
		return presentLimit(c, op.ID)
	case *core.ShareQueue:
		r, err := c.ask(&core.ListLimits{Queue: op.Sharing.Queue})
		switch {
		case err != nil:
			return nil
		case len(r.Sharings) == 0:
			return &core.ShareQueue{Sharing: core.Sharing{Queue: op.Sharing.Queue}}
		}
		return &core.ShareQueue{Sharing: r.Sharings[0]}
	case *core.PutPolicy:
		r, err := c.ask(&core.ListPolicies{Scope: op.Scope, Name: op.Name})
		if err != nil {
			return nil
		}
		now := &core.PutPolicy{Scope: op.Scope, Name: op.Name, Remove: core.AllPolicyFields}
		if len(r.Policies) > 0 {
			now.Set = r.Policies[0].JobPolicy
			now.Remove &^= now.Set.Has
		}
		return now
	case *core.PutSchedule:
		return presentSchedule(c, op.Schedule.Name, false)
	case *core.RemoveSchedule:
		return presentSchedule(c, op.Name, false)
	case *core.PauseSchedule:
		return presentSchedule(c, op.Name, true)
	}
	return nil
}

func presentLimit(c *session, id core.LimitID) core.Op {
	r, err := c.ask(&core.ListLimits{Queue: id.Queue, Name: id.Name})
	if err != nil {
		return nil
	}
	for i := range r.Limits {
		if l := r.Limits[i].Limit; l.ID() == id {
			return &core.PutLimit{Limit: l}
		}
	}
	return &core.RemoveLimit{ID: id}
}

// presentSchedule is presently for a schedule, or only for its pause.
func presentSchedule(c *session, name string, pause bool) core.Op {
	r, err := c.ask(&core.ListSchedules{Prefix: name, Limit: 1})
	if err != nil {
		return nil
	}
	if len(r.Schedules) == 0 || r.Schedules[0].Name != name {
		return &core.RemoveSchedule{Name: name}
	}
	e := r.Schedules[0]
	if pause {
		return &core.PauseSchedule{Name: name, Paused: e.Paused}
	}
	e.NextAt, e.LastAt, e.LastSeq, e.Runs, e.Revision, e.Recent = 0, 0, 0, 0, 0, nil // of its runs, or new
	return &core.PutSchedule{Schedule: e}
}

// settingText describes what an operation of presently sets.
func settingText(op core.Op) string {
	switch op := op.(type) {
	case *core.PauseQueue:
		return pausedText(op.Paused)
	case *core.PauseSchedule:
		return pausedText(op.Paused)
	case *core.SetQueueMax:
		return fmt.Sprintf("most jobs: high %d, normal %d, low %d", op.Max.High, op.Max.Normal, op.Max.Low)
	case *core.PutLimit:
		t := schema.ThrottleOf(&op.Limit.Throttle)
		return limitText(op.Limit.ID()) + ": " + cmp.Or(t.String(), "unlimited")
	case *core.RemoveLimit:
		return limitText(op.ID) + ": no limit"
	case *core.ShareQueue:
		return sharingText(&op.Sharing)
	case *core.PutPolicy:
		p := schema.ShowPolicy(&core.PolicyInfo{Scope: op.Scope, Name: op.Name, JobPolicy: op.Set})
		return cmp.Or(schema.Sentence(schema.PolicyRows, schema.Members(*p), false), "no policy")
	case *core.PutSchedule:
		e := scheduleOf(&op.Schedule)
		text, _ := json.Marshal(map[string]any{ // only texts, numbers and lists
			"cron": e.Cron, "zone": e.Zone, "every_s": e.EveryS, "queue": e.Queue, "type": e.Type, "args": e.Args,
			"body": e.Body, "priority": e.Priority, "tags": e.Tags, "backlog": e.Backlog, "missed": e.Missed,
			"paused": e.Paused,
		})
		return string(text)
	case *core.RemoveSchedule:
		return "no schedule"
	}
	return ""
}

func pausedText(paused bool) string {
	if paused {
		return "paused"
	}
	return "not paused"
}

func limitText(id core.LimitID) string {
	switch {
	case id.Name != "":
		return "shared limit"
	case id.Scope == core.ScopeQueue:
		return "queue"
	case id.Of == "":
		return "each " + limitScopes[id.Scope]
	}
	return limitScopes[id.Scope] + " " + text(id.Of)
}

func sharingText(s *core.Sharing) string {
	if s.Key.Kind == core.KeyNone {
		return "keys are not used"
	}
	v := sharingOf(s)
	out := "unique key"
	if v.KeyTag != "" {
		out = "tag " + v.KeyTag
	}
	out += ", " + v.Mode
	names := make([]string, 0, len(v.Weights))
	for key, turns := range v.Weights {
		names = append(names, fmt.Sprintf("%s=%d", key, turns))
	}
	slices.Sort(names)
	return strings.TrimSpace(out + " " + strings.Join(names, " "))
}

// settingAction is the action in the audit log for an operation that undoes one with another action.
func settingAction(op core.Op, undone string) string {
	switch op := op.(type) {
	case *core.PauseQueue:
		return pauseAction("queue", op.Paused)
	case *core.PauseSchedule:
		return pauseAction("schedule", op.Paused)
	case *core.PutLimit:
		return "limit.set"
	case *core.RemoveLimit:
		return "limit.remove"
	case *core.PutSchedule:
		return "schedule.change"
	case *core.RemoveSchedule:
		return "schedule.remove"
	}
	return undone
}

// pauseAction is the action in the audit log for a pause of a queue or a schedule, or for its end.
func pauseAction(kind string, paused bool) string {
	if paused {
		return kind + ".pause"
	}
	return kind + ".resume"
}

// maySet checks that the caller may apply an operation of presently.
func (s *Service) maySet(ctx context.Context, c *session, op core.Op) error {
	switch op := op.(type) {
	case *core.PauseQueue:
		return c.caller.may(access.Operate, op.Queue)
	case *core.SetQueueMax:
		return c.caller.may(access.Operate, op.Queue)
	case *core.ShareQueue:
		return c.caller.may(access.Operate, op.Sharing.Queue)
	case *core.PutLimit:
		return c.caller.mayLimit(access.Operate, &op.Limit)
	case *core.RemoveLimit:
		if op.ID.Name == "" {
			return c.caller.may(access.Operate, op.ID.Queue)
		}
		return c.caller.mayAll(access.Operate)
	case *core.PutPolicy:
		if op.Set.MoveTo != "" {
			if err := c.caller.may(access.Operate, op.Set.MoveTo); err != nil {
				return err
			}
		}
		if op.Scope == core.PolicyOfQueue {
			return c.caller.may(access.Operate, op.Name)
		}
	case *core.PutSchedule:
		if err := s.mayChangeSchedule(ctx, c, op.Schedule.Name); err != nil && !IsCode(err, CodeScheduleNotFound) {
			return err
		}
		return c.caller.may(access.Operate, op.Schedule.Job.Queue)
	case *core.PauseSchedule:
		return s.mayChangeSchedule(ctx, c, op.Name)
	case *core.RemoveSchedule:
		return s.mayChangeSchedule(ctx, c, op.Name)
	}
	return c.caller.mayAll(access.Operate)
}

// AuditPrefix begins the id of an entry of the audit log, in Made. Its number follows.
const AuditPrefix = "audit-"

// AuditID is the id of an entry of the audit log, in Made.
func AuditID(number uint64) string { return AuditPrefix + strconv.FormatUint(number, 10) }

// UndoChange undoes a change of a setting that is in the audit log. It is refused if the setting has changed since, or
// after undoFor. The new entry says what it undoes.
func (s *Service) UndoChange(ctx context.Context, caller Caller, number uint64) error {
	if err := caller.maySome(access.Operate); err != nil {
		return err
	}
	e, op, err := s.audit.undoable(number, s.Now().Time())
	if err != nil {
		return err
	}
	c := s.open(caller)
	defer c.Close()
	if err := s.maySet(ctx, c, op); err != nil {
		return err
	}
	commit, err := s.undoChange(c, &e, op)
	return c.after(ctx, commit, err)
}

func (s *Service) undoChange(c *session, e *AuditEntry, op core.Op) (core.Commit, error) {
	s.merging.Lock()
	defer s.merging.Unlock()
	now := presently(c, op)
	if text := settingText(now); now == nil || text != e.now {
		return 0, &Error{Code: CodeNoUndo, Detail: "it has changed since; now it is: " + text}
	}
	undo := AuditEntry{Action: settingAction(op, e.Action), Target: e.Target, Detail: "undoes " + AuditID(e.Number)}
	commit, err := s.applied(c, undo, op)
	if err != nil {
		return commit, err
	}
	return max(commit, s.audit.undone(c, e.Number)), nil
}

// undoable returns the entry with a number and the operation that undoes it.
func (l *auditLog) undoable(number uint64, now time.Time) (AuditEntry, core.Op, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, found := l.find(number)
	if !found {
		return AuditEntry{}, nil, &Error{Code: CodeOperationNotFound, Detail: "the audit log has no such entry"}
	}
	switch e := l.entries[i]; {
	case e.Undone:
		return e, nil, &Error{Code: CodeNoUndo, Detail: "it is undone already"}
	case e.inverse == nil:
		return e, nil, &Error{Code: CodeNoUndo, Detail: "this change cannot be undone"}
	case now.After(*e.UndoUntil):
		return e, nil, &Error{Code: CodeNoUndo, Detail: "it is too late to undo this change"}
	default:
		op, err := e.inverse.op()
		if err != nil {
			return e, nil, &Error{
				Code:   CodeNoUndo,
				Detail: "this change was stored by another version of the broker, which must undo it: " + err.Error(),
			}
		}
		return e, op, nil
	}
}

// find returns the index of the entry with a number.
func (l *auditLog) find(number uint64) (i int, found bool) {
	return slices.BinarySearchFunc(l.entries, number, func(e AuditEntry, n uint64) int {
		return cmp.Compare(e.Number, n)
	})
}

// undone marks an entry as undone, in the store too.
func (l *auditLog) undone(c *session, number uint64) core.Commit {
	l.mu.Lock()
	i, found := l.find(number)
	if !found { // it has made room for others
		l.mu.Unlock()
		return 0
	}
	l.entries[i].Undone, l.entries[i].UndoUntil, l.entries[i].inverse = true, nil, nil
	e := l.entries[i]
	l.mu.Unlock()
	return c.writeMeta(auditName(number), e.stored())
}
