package machine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/record"
)

// encodable returns why a batch cannot be in an entry of a format; nil: it can.
func encodable(b *record.CommitBatch, format int) error {
	_, err := record.AppendEntry(nil, &record.Entry{Position: record.Position{Format: format, Number: 1}, Batch: b})
	return err
}

// Whatever clients do while a format is in force, its entries can carry what is committed.
func TestFormatInForceCarriesAllChanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(24) {
		l := newHistory(seed + 1)
		format := 1 + int(seed%record.NewestFormat)
		l.opts.Format = func() int { return format }
		l.m = l.boot()
		l.connect()
		l.store.check = func(b *record.CommitBatch) error { return encodable(b, format) }
		for i := range 1200 {
			if i == 800 {
				format = min(format+1, record.NewestFormat) // only at a commit, but commits do not wait for it
			}
			if err := l.step(); err != nil {
				t.Fatalf("seed %d, format %d: %v\n%s", seed, format, err, strings.Join(l.log, "\n"))
			}
		}
	}
}

// inFormat is a machine of a cluster in which a format is in force, with a client.
func inFormat(format *int) (p *player, do func(core.Op) core.Reply) {
	p = newPlayer()
	p.opts.Format = func() int { return *format }
	p.boot()
	client := p.m.OpenClient(0, core.ClientOptions{Protocol: core.HTTP})
	return p, func(op core.Op) core.Reply {
		p.store.apply(p.m, p.clk.Now(), client, op)
		replies, _ := p.store.take(p.m, client)
		return replies[len(replies)-1]
	}
}

// An operation whose data the format in force cannot carry is refused, alone and in a list, and accepted once the
// format can.
func TestOperationsOfNewerFormatsAreRefused(t *testing.T) {
	t.Parallel()
	wide := int64(core.MaxPriority)
	job := func(set func(*core.Job)) core.Op {
		j := &core.Job{Queue: "q"}
		set(j)
		return &core.Submit{Job: j}
	}
	var one core.Ref
	for name, op := range map[string]func() core.Op{
		"on_broken":     func() core.Op { return job(func(j *core.Job) { j.OnBroken = core.BrokenFails }) },
		"cost":          func() core.Op { return job(func(j *core.Job) { j.Cost = 2 }) },
		"place by seq":  func() core.Op { return job(func(j *core.Job) { j.SeqOrder = true }) },
		"wide priority": func() core.Op { return job(func(j *core.Job) { j.Priority = wide }) },
		"failure": func() core.Op {
			return job(func(j *core.Job) { j.PriorFails, j.Failure = 1, &core.Failure{Type: "E"} })
		},
		"callback": func() core.Op { return &core.OpenBatch{Success: &core.Job{Queue: "q", Cost: 2}} },
		"schedule": func() core.Op {
			costly := &core.Job{Queue: "q", Cost: 2}
			return &core.PutSchedule{Schedule: core.Schedule{Name: "s", Every: time.Hour, Job: costly}}
		},
		"priority later": func() core.Op { return &core.Update{Ref: one, Set: core.JobChange{Priority: &wide}} },
		"stop":           func() core.Op { return &core.Cancel{Ref: one, Running: core.RunningSignal} },
		"log": func() core.Op {
			return &core.AppendLog{Ref: one, Authority: core.ByLeased, Lines: []string{"x"}}
		},
		"limit": func() core.Op {
			return &core.PutLimit{Limit: core.Limit{
				Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 1},
			}}
		},
		"sharing": func() core.Op {
			key := core.JobKey{Kind: core.KeyUnique}
			return &core.ShareQueue{Sharing: core.Sharing{Queue: "q", Key: key, Fair: true}}
		},
		"order": func() core.Op {
			key := core.JobKey{Kind: core.KeyTag, Tag: "t"}
			return &core.ShareQueue{Sharing: core.Sharing{Queue: "q", Key: key, Ordered: true}}
		},
		"shared limit": func() core.Op {
			few := core.Throttle{Leased: 1}
			return &core.PutLimit{Limit: core.Limit{
				Name: "all", Selector: core.Selector{Queues: []string{"q", "r"}}, Throttle: few,
			}}
		},
		"policy": func() core.Op {
			return &core.PutPolicy{Name: "q", Set: core.JobPolicy{Has: core.PolicyMaxFails, MaxFails: 3}}
		},
		"rule": func() core.Op { return &core.MoveSpent{Queue: "q", Rule: core.SpentRule{Leases: 2, To: "r"}} },
		"window": func() core.Op {
			return &core.Submit{Job: &core.Job{Queue: "q", UniqueKey: "k", Unique: core.UniqueRefuse}, Window: 1 << 60}
		},
	} {
		format := 3
		p, do := inFormat(&format)
		one.Seq = do(&core.Submit{Job: &core.Job{Queue: "q"}}).Seq
		do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"})
		r := do(op())
		if !errors.Is(r.Err, core.ErrInvalid) || !strings.Contains(fmt.Sprint(r.Err), "(format 4, now 3)") {
			t.Errorf("%s in format 3: %+v", name, r)
		}
		if r := do(&core.Atomic{Ops: []core.Op{op()}}); r.Kind != core.Failed || !errors.Is(r.Err, core.ErrInvalid) {
			t.Errorf("%s in a list: %+v", name, r)
		}
		if p.store.check = func(b *record.CommitBatch) error { return encodable(b, format) }; !commits(t, p) {
			t.Errorf("%s: the batch needs another format", name)
		}
		format = 4
		if r := do(op()); r.Kind == core.Failed {
			t.Errorf("%s in format 4: %v", name, r.Err)
		}
		commits(t, p)
	}
}

func commits(t *testing.T, p *player) bool {
	t.Helper()
	_, err := p.commit()
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// What no client asks for is not stored in an older format, and the operations that would store it succeed.
func TestUnaskedFeaturesAreOffInOlderFormats(t *testing.T) {
	t.Parallel()
	format := 3
	p, do := inFormat(&format)
	p.store.check = func(b *record.CommitBatch) error { return encodable(b, format) }
	submit := func() uint64 {
		r := do(&core.Submit{Job: &core.Job{Queue: "q", Own: core.PolicyMaxFails, Tallies: core.AllTallies}})
		if r.Kind != core.Submitted {
			t.Fatal(r.Err)
		}
		return r.Seq
	}
	fails, moves, slow := uint32(7), core.PolicyExhausted|core.PolicyMaxFails, core.Throttle{Rate: 1, Burst: 3}
	for _, op := range []core.Op{
		&core.PutPolicy{Name: "q", Set: core.JobPolicy{Has: moves, MoveTo: "dead"}, FromConfig: true},
		&core.PutLimit{Limit: core.Limit{
			Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: slow, FromConfig: true,
		}},
	} {
		if r := do(op); r.Kind != core.Accepted {
			t.Fatal(r.Err)
		}
	}
	seq := submit()
	do(&core.Update{Ref: core.Ref{Seq: seq}, Set: core.JobChange{MaxAttempts: &fails}})
	if r := do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"}); r.Kind != core.Assigned {
		t.Fatal(r.Kind)
	}
	commits(t, p)
	until := p.clk.Now().Add(time.Hour)
	do(&core.Report{Ref: core.Ref{Seq: seq}, Authority: core.ByLeased, Heartbeat: true, LeaseUntil: until})
	commits(t, p)
	do(&core.Fail{Ref: core.Ref{Seq: seq}, Authority: core.ByLeased, Failure: &core.Failure{Type: "E"}})
	commits(t, p)
	if i := do(&core.Inspect{Ref: core.Ref{Seq: seq}}).Info; i == nil || i.State != core.Dead || i.Queue != "q" {
		t.Errorf("the job is %+v", i)
	}
}
