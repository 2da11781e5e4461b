package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"broker/core"
)

// promise is what clients may rely on about one job. Times of leases are from the monotonic clock, other times from the
// wall clock.
type promise struct {
	seq         uint64
	id          string
	bodies      []written // the newest last
	queues      []written // the newest last
	past        []history // its timeline after changes
	log         []written // its lines
	stops       []written // requests to stop; see stop.go
	askedFor    uint32    // the epoch of the last request to stop
	ephemeral   bool
	lossy       bool         // submitted to a queue whose jobs are in memory only
	created     core.Instant // when it was first submitted; of the wall clock
	inSeq       bool         // SeqOrder
	tallied     bool         // TallyMoves
	expiresAt   core.Instant
	onBroken    core.OnBroken
	after       []link
	parent      uint64
	hadChild    bool // the death of a descendant breaks the jobs that wait for this one
	rerunOf     uint64
	made        core.Commit // the admission is acknowledged once this is on disk
	mayEnd      bool        // a client tried to finish or remove it
	limited     bool        // it may end without a client: attempts, time to start
	forced      bool        // a client made it ready despite its dependencies
	again       bool        // a client has requested a rerun, or it left the dead set: an outcome is not its end
	ended       core.Commit // its end is acknowledged once this is on disk; zero: no end was accepted
	endAccepted bool        // its end was accepted by this process
	damaged     bool        // the store cannot read its body

	seen       bool // it was submitted or leased since the last start
	leased     bool
	epoch      uint32
	leaseUntil core.Instant // earliest end of the lease; zero: until the connection closes
	holder     core.ClientID
	leaseFor   time.Duration // Job.LeaseFor
	own        core.PolicyFields
	cost       uint32      // of a lease
	byName     bool        // it was leased by LeaseJob, regardless of limits
	retries    core.Commit // of the last change of maxFails
	// its limits are unknown: the broker has created it, or a crash may have lost a change of them
	unknown  bool
	finishes bool // ExhaustedFinish
	// Its own limits.
	maxAttempts, maxFails uint32
	spans                 []time.Duration // of leases and extensions since the last start
	request               uint64          // tag of the request that leased it; zero: none
}

// written is a value of a job that is acknowledged once a commit is on disk.
type written struct {
	text string
	made core.Commit
}

// link is a dependency, from a commit on.
type link struct {
	seq  uint64
	made core.Commit
}

// write records a new value.
func write(values *[]written, text string, made core.Commit) {
	*values = append(*values, written{text, made})
}

// may reports whether a job may have a value after a crash: the newest value that was on disk, or a later one.
func may(values []written, text string, committed core.Commit) bool {
	for _, v := range slices.Backward(values) {
		if v.text == text {
			return true
		}
		if v.made <= committed {
			return false
		}
	}
	return false
}

// wait is a client that waits for an outcome.
type wait struct {
	client core.ClientID
	seq    uint64
	until  core.Instant // of the monotonic clock; zero: the end is uncertain
}

// batch is what clients may rely on about a batch.
type batch struct {
	made     core.Commit
	kept     bool // it does not time out: it has no deadline and is not committed
	reopened bool
	members  []uint64
	ended    core.Commit // it was purged, which is acknowledged once this is on disk; zero: it was not
}

// keepsPlace reports whether a job was submitted with SeqOrder.
func (m *model) keepsPlace(seq uint64) bool {
	p := m.jobs[seq]
	return p != nil && p.inSeq
}

// soon stands for a future commit: a change that is acknowledged at once may be lost until that commit.
const soon = ^core.Commit(0)

// model is everything that clients may rely on.
type model struct {
	jobs          map[uint64]*promise
	seqs          []uint64
	waits         map[uint64]*wait    // by tag
	requests      map[uint64]*request // of leases, by tag
	batches       map[uint64]*batch
	numbers       []uint64 // of batches
	plans         map[string]*plan
	documents     map[string]*document
	rows          map[string]core.Commit // queues that survive a restart once this commit is on disk
	pauses        map[string]pause
	windows       map[string]window // by queue and key
	policies      map[policyKey][]policyVersion
	spent         spentRules
	shared        map[string]*sharedLimit
	orderSettings map[string][]orderSetting // by queue
}

func newModel() *model {
	return &model{
		jobs: map[uint64]*promise{}, waits: map[uint64]*wait{}, requests: map[uint64]*request{},
		batches: map[uint64]*batch{}, plans: map[string]*plan{}, rows: map[string]core.Commit{},
		pauses: map[string]pause{}, policies: map[policyKey][]policyVersion{}, spent: newSpentRules(),
		shared: map[string]*sharedLimit{}, orderSettings: map[string][]orderSetting{}, windows: map[string]window{},
		documents: map[string]*document{},
	}
}

func (m *model) add(p *promise) {
	m.jobs[p.seq] = p
	m.seqs = append(m.seqs, p.seq)
}

func (m *model) submitted(seq uint64, existing, lossy bool, j *core.Job, made core.Commit) {
	if existing {
		if p := m.jobs[seq]; p != nil && p.ephemeral && !j.Ephemeral {
			p.ephemeral, p.made = false, made
		}
		return
	}
	if parent := m.jobs[j.Parent]; parent != nil {
		parent.hadChild = true
	}
	m.add(&promise{
		seq: seq, id: j.ID, seen: true, bodies: []written{{string(j.Body), made}}, queues: []written{{j.Queue, made}},
		ephemeral: j.Ephemeral, lossy: lossy, inSeq: j.SeqOrder, tallied: j.Tallies != 0, expiresAt: j.ExpiresAt,
		made:    made,
		limited: j.MaxAttempts > 0 || j.StartBefore != 0, after: links(j.After, made), onBroken: j.OnBroken,
		parent: j.Parent, leaseFor: j.LeaseFor,
		own: j.Own, cost: max(j.Cost, 1), maxAttempts: j.MaxAttempts, maxFails: j.MaxFails,
		finishes: j.Exhausted == core.ExhaustedFinish,
	})
	if _, known := m.rows[j.Queue]; j.Origin == core.Faktory && !known && made != 0 {
		m.rows[j.Queue] = made
	}
	if b := m.batches[j.Batch]; b != nil {
		b.members = append(b.members, seq)
	}
}

func links(seqs []uint64, made core.Commit) []link {
	all := make([]link, len(seqs))
	for i, seq := range seqs {
		all[i] = link{seq, made}
	}
	return all
}

// flushed replaces soon by the newest commit on disk.
func (m *model) flushed(committed core.Commit) {
	settle := func(c *core.Commit) {
		if *c == soon {
			*c = committed
		}
	}
	m.plansFlushed(committed)
	m.windowsFlushed(committed)
	m.documentsFlushed(settle, committed)
	for _, p := range m.jobs {
		settle(&p.made)
		settle(&p.ended)
		settle(&p.retries)
		for i := range p.bodies {
			settle(&p.bodies[i].made)
		}
		for i := range p.queues {
			settle(&p.queues[i].made)
		}
		for i := range p.stops {
			settle(&p.stops[i].made)
		}
		for i := range p.log {
			settle(&p.log[i].made)
		}
		for i := range p.past {
			settle(&p.past[i].made)
		}
		for i := range p.after {
			settle(&p.after[i].made)
		}
	}
	for _, s := range m.shared {
		for k := range s.past {
			settle(&s.past[k].made)
		}
	}
	for _, past := range m.policies {
		for k := range past {
			settle(&past[k].made)
		}
	}
	for _, past := range m.orderSettings {
		for k := range past {
			settle(&past[k].made)
		}
	}
	for q, c := range m.rows {
		settle(&c)
		m.rows[q] = c
	}
	for _, b := range m.batches {
		settle(&b.made)
		settle(&b.ended)
	}
}

// recordEnd records that the end of a job was accepted.
func (p *promise) recordEnd(commit core.Commit) {
	p.leased, p.mayEnd, p.endAccepted, p.ended = false, true, true, commit
}

// leasesReleased records that a connection no longer holds the selected jobs.
func (m *model) leasesReleased(c core.ClientID, meant func(seq uint64) bool) {
	for _, seq := range m.seqs {
		if p := m.jobs[seq]; p.leased && p.holder == c && meant(seq) {
			p.leased = false
		}
	}
}

// clientLeft records that a client has left: its leases by connection are free, and its waits are over.
func (m *model) clientLeft(c core.ClientID) {
	m.leasesReleased(c, func(uint64) bool { return true })
	m.waitsOver(c)
}

// waitsOver records that a client waits for no job any more.
func (m *model) waitsOver(c core.ClientID) {
	for tag, w := range m.waits {
		if w.client == c {
			delete(m.waits, tag)
		}
	}
}

// afterCrash compares the recovered state with the model; committed is the newest commit that was on disk. most is the
// latest time that the wall clock has shown.
func (w *world) afterCrash(committed core.Commit) error {
	if err := w.checkEvents(committed); err != nil {
		return err
	}
	if err := cmp.Or(w.documentsAfterCrash(committed), w.logsHaveJobs()); err != nil {
		return err
	}
	m := w.model
	kept := m.seqs[:0]
	for _, seq := range m.seqs {
		p := m.jobs[seq]
		i := w.look(seq)
		expired := p.expiresAt != 0 && w.clk.most >= p.expiresAt
		promised := !p.ephemeral && p.made != 0 && p.made <= committed
		switch {
		case i == nil && promised && !p.mayEnd && !m.endsAlone(p) && !expired:
			return fmt.Errorf("job %d (%q) was acknowledged by commit %d of %d and is lost", seq, p.id, p.made,
				committed)
		case i != nil && p.ended != 0 && p.ended <= committed && i.State.Unfinished():
			return fmt.Errorf("job %d came back as %v though its end was acknowledged", seq, i.State)
		case i != nil && (p.damaged || i.Damage != ""):
			if err := p.damageShown(i); err != nil {
				return err
			}
			i.Job.Body = []byte(p.bodies[len(p.bodies)-1].text) // as before the damage
		case i != nil && i.Job != nil && i.Job.Rares().RerunOf != p.rerunOf:
			return fmt.Errorf("job %d came back as a copy of %d, and is one of %d", seq, i.Job.Rares().RerunOf, p.rerunOf)
		case i != nil && (i.Job == nil || !may(p.bodies, string(i.Job.Body), committed) || i.Job.ID != p.id):
			return fmt.Errorf("job %d came back changed: %+v, was %+v, commit %d", seq, i.Job, p.bodies, committed)
		case i != nil && len(i.Job.Tags) > 0 && i.Job.Tags[0] != string(i.Job.Body):
			return fmt.Errorf("job %d came back half changed: %+v", seq, i.Job)
		case i != nil && (!may(p.queues, i.Queue, committed) && !m.movedBy(p, i.Queue) || i.Job.Queue != i.Queue):
			return fmt.Errorf("job %d came back in queue %s and %s, was %+v, commit %d", seq, i.Queue, i.Job.Queue,
				p.queues, committed)
		}
		if i == nil {
			delete(m.jobs, seq)
			continue
		}
		if err := p.historyAfterCrash(i, committed); err != nil {
			return err
		}
		if err := cmp.Or(w.leaseAfterCrash(p, i), p.stopsAfterCrash(i, committed),
			w.logAfterCrash(p, committed)); err != nil {
			return err
		}
		p.endAccepted, p.seen, p.lossy = i.State == core.Done, false, false
		p.unknown, p.retries = p.unknown || p.retries > committed, 0
		p.bodies, p.queues = []written{{string(i.Job.Body), 1}}, []written{{i.Queue, 1}}
		p.after = slices.DeleteFunc(p.after, func(l link) bool { return l.made > committed })
		p.made, p.ended, p.mayEnd, p.epoch = 1, 0, p.mayEnd && (p.endAccepted || i.CancelRequestedAt != 0), 0
		kept = append(kept, seq)
	}
	m.seqs = kept
	m.waits, m.requests = map[uint64]*wait{}, map[uint64]*request{}
	for number, b := range m.batches {
		r := w.ask(&core.InspectBatch{Batch: number})
		if r.Batch == nil && b.kept && b.made != 0 && b.made <= committed {
			return fmt.Errorf("batch %d was acknowledged by commit %d of %d and is lost", number, b.made, committed)
		}
		if r.Batch != nil && b.ended != 0 && b.ended <= committed {
			return fmt.Errorf("batch %d came back though its purge was acknowledged", number)
		}
		if r.Batch == nil {
			delete(m.batches, number)
			continue
		}
		b.made, b.ended, b.kept = 1, 0, false // a commit of the batch may have been lost
	}
	m.numbers = slices.Sorted(maps.Keys(m.batches))
	if err := w.orderAfterCrash(committed); err != nil {
		return err
	}
	w.pausesAfterCrash()
	w.windowsAfterCrash(committed)
	if err := cmp.Or(w.policiesAfterCrash(committed), w.spentAfterCrash(committed),
		w.sharedAfterCrash(committed)); err != nil {
		return err
	}
	return w.rowsAfterCrash(committed)
}

// rowsAfterCrash checks the queues that must still exist.
func (w *world) rowsAfterCrash(committed core.Commit) error {
	for q, c := range w.model.rows {
		if r := w.ask(&core.InspectQueue{Queue: q}); c > committed {
			delete(w.model.rows, q)
		} else if r.Kind != core.Queues {
			return fmt.Errorf("queue %s is forgotten, commit %d of %d", q, c, committed)
		} else {
			w.model.rows[q] = 1
		}
	}
	return nil
}
