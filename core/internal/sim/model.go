package sim

import (
	"fmt"

	"broker/core"
)

// promise is what one client may rely on about one job.
type promise struct {
	seq       uint64
	id        string
	body      string
	ephemeral bool
	expiresAt core.Instant
	made      core.Commit // the admission is promised once this is on disk
	mayEnd    bool        // somebody tried to finish or remove it
	limited   bool        // its attempts are limited: it may end without anybody's word
	ended     core.Commit // a finish is promised once this is on disk; zero: none accepted
	overBy    bool        // a finish was accepted in this life of the process

	leased     bool
	epoch      uint32
	leaseUntil core.Instant // zero: as long as the connection
	holder     core.ClientID
}

// model is what all clients together were promised.
type model struct {
	jobs map[uint64]*promise
	seqs []uint64
}

func newModel() *model { return &model{jobs: map[uint64]*promise{}} }

func (m *model) submitted(r core.Reply, j *core.Job) {
	if r.Existing {
		if p := m.jobs[r.Seq]; p != nil && p.ephemeral && !j.Ephemeral {
			p.ephemeral, p.made = false, r.Commit
		}
		return
	}
	m.jobs[r.Seq] = &promise{
		seq: r.Seq, id: j.ID, body: string(j.Body), ephemeral: j.Ephemeral, expiresAt: j.ExpiresAt, made: r.Commit,
		limited: j.MaxAttempts > 0,
	}
	m.seqs = append(m.seqs, r.Seq)
}

// assigned checks that a hand-out breaks no promise.
func (m *model) assigned(now core.Instant, c core.ClientID, r core.Reply, held bool) error {
	p := m.jobs[r.Seq]
	switch {
	case p == nil:
		return fmt.Errorf("job %d was handed out and never submitted", r.Seq)
	case p.overBy:
		return fmt.Errorf("job %d was handed out after its finish was accepted", r.Seq)
	case p.leased && (p.leaseUntil == 0 || now < p.leaseUntil):
		return fmt.Errorf("job %d was handed out twice: leased until %d, now %d", r.Seq, p.leaseUntil, now)
	case r.Job == nil || string(r.Job.Body) != p.body:
		return fmt.Errorf("job %d was handed out with another body", r.Seq)
	}
	p.leased, p.epoch, p.holder, p.leaseUntil = true, r.Lease.Epoch, 0, 0
	if held {
		p.holder = c
	}
	if r.Lease.LeaseFor > 0 {
		p.leaseUntil = now.Add(r.Lease.LeaseFor)
	}
	return nil
}

// gone notes that a client has left: what it held by its connection is free.
func (m *model) gone(c core.ClientID) {
	for _, p := range m.jobs {
		if p.leased && p.holder == c && c != 0 {
			p.leased = false
		}
	}
}

// afterCrash compares what came back with what was promised when committed was the newest commit on disk.
func (m *model) afterCrash(now core.Instant, committed core.Commit, look func(seq uint64) *core.JobInfo) error {
	kept := m.seqs[:0]
	for _, seq := range m.seqs {
		p := m.jobs[seq]
		i := look(seq)
		expired := p.expiresAt != 0 && now >= p.expiresAt
		promised := !p.ephemeral && p.made != 0 && p.made <= committed
		switch {
		case i == nil && promised && !p.mayEnd && !p.limited && !expired:
			return fmt.Errorf("job %d (%q) was acknowledged by commit %d of %d and is lost", seq, p.id, p.made, committed)
		case i != nil && p.ended != 0 && p.ended <= committed && i.State.Unfinished():
			return fmt.Errorf("job %d came back as %v though its finish was acknowledged", seq, i.State)
		case i != nil && (i.Job == nil || string(i.Job.Body) != p.body || i.Job.ID != p.id):
			return fmt.Errorf("job %d came back changed", seq)
		}
		if i == nil {
			delete(m.jobs, seq)
			continue
		}
		p.leased = i.State == core.Leased
		p.leaseUntil, p.holder = i.LeaseUntil, 0
		p.overBy = i.State == core.Done
		p.made, p.ended, p.mayEnd = 1, 0, p.mayEnd && p.overBy
		kept = append(kept, seq)
	}
	m.seqs = kept
	return nil
}
