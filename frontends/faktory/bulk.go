package faktory

import (
	"encoding/json"
	"strings"

	"broker/core"
)

// bulkPush is PUSHB: each job is taken or refused on its own; the refused ones are named in the reply.
type bulkPush struct {
	units   workUnits
	refused map[string]string
	commit  core.Commit
	jobs    []*core.Job // checked and not yet submitted
}

// pushBulk: PUSHB [{job},…].
func (s *session) pushBulk(b *scratch, arg []byte) {
	units, err := newWorkUnits(arg, &b.unit)
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
	b := s.f.borrow()
	defer s.f.giveBack(b)
	now := s.f.b.Now()
	for n := 0; t.units.next(&b.unit); {
		t.add(s, b, now)
		if n++; n == bulkPage {
			t.submit(s, b)
			return false
		}
	}
	t.submit(s, b)
	text, _ := json.Marshal(t.refused) // strings always have a JSON form
	s.bulk(text, t.commit)
	return true
}

// bulkPage is how many jobs one step takes.
const bulkPage = 4 * maxOps

// add checks the job in b.unit and puts it with those to be submitted.
func (t *bulkPush) add(s *session, b *scratch, now core.Instant) {
	sub, err := s.f.newPushedJob(&b.unit, &s.names, now)
	if err == nil && (sub.after != nil || sub.parent != "") {
		t.submit(s, b) // the job may be tied to one of these
		err = s.link(&sub)
	}
	if err != nil {
		t.refused[string(b.unit.jid)] = err.Error()
		return
	}
	if t.jobs = append(t.jobs, sub.job); len(t.jobs) == maxOps {
		t.submit(s, b)
	}
}

// submit has the collected jobs admitted in one call and notes those that were refused.
func (t *bulkPush) submit(s *session, b *scratch) {
	if len(t.jobs) == 0 {
		return
	}
	first := s.tag + 1
	for _, job := range t.jobs {
		b.submit(s.nextTag(), job)
	}
	replies := s.f.b.Do(s.client, b.ops, nil)
	b.clear()
	for i := range replies {
		job := t.jobs[replies[i].Tag-first]
		commit, err := s.pushed(job, &replies[i])
		t.commit = max(t.commit, commit)
		if err != nil {
			t.refused[job.ID] = strings.TrimPrefix(errorText(err, s.f.subject(job, err)), "ERR ")
		}
	}
	clear(t.jobs)
	t.jobs = t.jobs[:0]
}
