package faktory

import (
	"encoding/json"
	"strings"

	"broker/core"
)

// bulkPush is a running PUSHB. Each job is accepted or refused separately; the reply names the refused jobs.
type bulkPush struct {
	units   workUnits
	refused map[string]string
	commit  core.Commit
	jobs    []*core.Job // checked jobs, to be submitted
}

// pushBulk: PUSHB [{job},…].
func (s *session) pushBulk(p *pipeline, arg []byte) {
	units, err := newWorkUnits(arg, &p.unit)
	if err != nil {
		s.refuse(err.Error())
		return
	}
	t := &bulkPush{units: units, refused: make(map[string]string)}
	s.start(t)
	if s.running != nil {
		t.units.keep()
	}
}

// step takes one page of jobs.
func (t *bulkPush) step(s *session) bool {
	unit, now := &s.Pipeline.unit, s.front.broker.Now()
	for n := 0; t.units.next(unit); {
		t.add(s, unit, now)
		if n++; n == bulkPage {
			t.submit(s)
			return false
		}
	}
	t.submit(s)
	text, _ := json.Marshal(t.refused) // strings always have a JSON form
	s.bulk(text, t.commit)
	return true
}

// The number of jobs in one step, and the number that go to the broker in one call.
const (
	bulkPage  = 1024
	bulkGroup = 256
)

// add checks a job and collects it for submission.
func (t *bulkPush) add(s *session, unit *workUnit, now core.Instant) {
	sub, err := s.front.newPushedJob(unit, &s.names, now)
	if err == nil && (sub.after != nil || sub.parent != "") {
		t.submit(s) // the new job may link to one of the collected jobs
		err = s.link(&sub)
	}
	if err != nil {
		t.refused[string(unit.jid)] = err.Error()
		return
	}
	if t.jobs = append(t.jobs, sub.job); len(t.jobs) == bulkGroup {
		t.submit(s)
	}
}

// submit submits the collected jobs in one call.
func (t *bulkPush) submit(s *session) {
	if len(t.jobs) == 0 {
		return
	}
	first := s.Tag + 1
	submits, ops := make([]core.Submit, len(t.jobs)), make([]core.Op, len(t.jobs))
	for i, job := range t.jobs {
		submits[i] = core.Submit{Tag: s.NextTag(), Job: job}
		ops[i] = &submits[i]
	}
	replies := s.front.broker.Do(s.Client, ops, nil)
	for i := range replies {
		job := t.jobs[replies[i].Tag-first]
		commit, err := s.pushResult(job, &replies[i])
		t.commit = max(t.commit, commit)
		if err != nil {
			t.refused[job.ID] = strings.TrimPrefix(errorText(err, s.front.subject(job, err)), "ERR ")
		}
	}
	clear(t.jobs)
	t.jobs = t.jobs[:0]
}

// bytes implements task.
func (t *bulkPush) bytes() int { return len(t.units.s.data) }
