package machine_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"broker/core"
	"broker/core/coretest"
)

// reader takes typed options from a command and keeps the first mistake.
type reader struct {
	*coretest.Command
	p   *player
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil && err != nil {
		r.err = err
	}
}

func (r *reader) flag(name string) bool { return r.Option(name) != "" }

func (r *reader) number(name string) int64 {
	v := r.Option(name)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseInt(v, 10, 64)
	r.fail(err)
	return n
}

func (r *reader) count(name string) uint32 { return uint32(r.number(name)) }

func (r *reader) span(name string) time.Duration {
	v := r.Option(name)
	if v == "" {
		return 0
	}
	d, err := time.ParseDuration(v)
	r.fail(err)
	return d
}

// instant reads "10s" as from the beginning of the script, "+10s" as from now.
func (r *reader) instant(name string) core.Instant {
	v := r.Option(name)
	if v == "" {
		return 0
	}
	d, err := time.ParseDuration(v)
	r.fail(err)
	if v[0] == '+' {
		return r.p.clk.Now().Add(d)
	}
	return r.p.start.Add(d)
}

func (r *reader) seqs(name string) (all []uint64) {
	if v := r.Option(name); v != "" {
		for _, s := range strings.Split(v, ",") {
			n, err := strconv.ParseUint(s, 10, 64)
			r.fail(err)
			all = append(all, n)
		}
	}
	return all
}

func (r *reader) bytes(name string) []byte {
	if v := r.Option(name); v != "" {
		return []byte(v)
	}
	return nil
}

// id reads a client's own id, or one of another job's other names.
func (r *reader) id(name string) string {
	v := r.Option(name)
	if !strings.HasPrefix(v, "alias:") && !strings.HasPrefix(v, "minted:") {
		return v
	}
	ref, err := r.p.ref(v)
	r.fail(err)
	return ref.ID
}

func (r *reader) meta() []core.MetaEntry {
	v := r.Option("mark")
	if v == "" {
		return nil
	}
	name, value, is := strings.Cut(v, ":")
	if !is {
		return []core.MetaEntry{{Name: name}}
	}
	return []core.MetaEntry{{Name: name, Value: []byte(value)}}
}

func (r *reader) claim() core.FinishAuthority {
	switch {
	case r.flag("anyone"):
		return core.ByAnyone
	case r.flag("leased"):
		return core.ByLeased
	}
	return core.ByHolder
}

func (r *reader) state(name string) core.State {
	if v := r.Option(name); v != "" {
		return r.stateNamed(v)
	}
	return core.Gone
}

func (r *reader) stateNamed(v string) core.State {
	for _, s := range core.States {
		if s.String() == v {
			return s
		}
	}
	r.fail(fmt.Errorf("no state %q", v))
	return core.Gone
}

func (r *reader) protocol() core.Protocol {
	v := r.Option("of")
	for _, p := range core.Protocols {
		if p.String() == v {
			return p
		}
	}
	if v != "" {
		r.fail(fmt.Errorf("no protocol %q", v))
	}
	return core.Internal
}

// ref reads 3 (a Seq), id:text, minted:3 or alias:3.
func (p *player) ref(s string) (core.Ref, error) {
	kind, rest, is := strings.Cut(s, ":")
	if !is {
		kind, rest = "seq", s
	}
	if kind == "id" {
		return core.Ref{ID: rest}, nil
	}
	n, err := strconv.ParseUint(rest, 10, 64)
	if err != nil {
		return core.Ref{}, err
	}
	switch kind {
	case "seq":
		return core.Ref{Seq: n}, nil
	case "alias":
		return core.Ref{ID: core.Alias(n)}, nil
	case "minted":
		r := p.ask(&core.Inspect{Ref: core.Ref{Seq: n}, Brief: true})
		if r.Info == nil {
			return core.Ref{}, fmt.Errorf("no job %d", n)
		}
		return core.Ref{ID: core.MintedID(n, r.Info.CreatedAt)}, nil
	}
	return core.Ref{}, fmt.Errorf("no reference %q", s)
}

// op makes the operation of a command.
func (p *player) op(c *coretest.Command, tag uint64) (core.Op, error) {
	r := &reader{Command: c, p: p}
	var op core.Op
	switch verb := c.Word(1); verb {
	case "submit":
		op = r.submit(tag)
	case "lease":
		op = r.lease(tag)
	case "able":
		op = &core.Register{Queue: c.Word(2), LeaseFor: r.span("for")}
	case "unable":
		op = &core.Unregister{Queue: c.Word(2), All: r.flag("all")}
	case "hold", "free":
		op = &core.HoldQueue{Queue: c.Word(2), Free: verb == "free"}
	case "sleep":
		op = &core.Sleep{Tag: tag}
	case "withdraw":
		op = &core.CancelLease{}
	case "cancel-waits":
		op = &core.CancelWaits{}
	case "mark":
		op = &core.WriteMeta{Tag: tag, Entries: r.meta()}
	case "read-mark":
		op = &core.ReadMeta{Tag: tag, Name: c.Word(2)}
	case "last-commit":
		op = &core.LastCommit{Tag: tag}
	case "read-stats":
		op = &core.ReadStats{Tag: tag}
	case "complete", "fail", "report", "data", "warn", "await", "cancel", "enqueue", "bury", "release", "rerun",
		"resubmit", "log":
		op = r.jobOp(verb, tag)
	case "put-schedule", "pause-schedule", "resume-schedule", "remove-schedule", "run-schedule", "list-schedules":
		op = r.scheduleOp(verb, tag)
	case "put-limit", "remove-limit", "share", "list-limits":
		op = r.limitOp(verb, tag)
	case "put-shared", "remove-shared", "list-shared":
		op = r.sharedOp(verb, tag)
	case "policy", "list-policies":
		op = r.policyOp(verb, tag)
	case "atomic": // act knows the operations
	case "update", "move", "transfer", "lease-job":
		op = r.changeOp(verb, tag)
	case "drain":
		op = &core.Drain{Tag: tag, On: c.Word(2) == "on", RefuseJobs: r.flag("refuse-jobs")}
	case "create", "drop", "pause", "resume", "limit", "throttle", "keep-done", "move-spent", "finished", "purge",
		"reset", "list", "list-queues", "inspect-queue":
		op = r.queueOp(verb, tag)
	case "inspect":
		op = r.inspect(tag)
	case "batch", "commit-batch", "reopen-batch", "inspect-batch", "purge-batches":
		op = r.groupOp(verb, tag)
	default:
		if op = r.lookOp(verb, tag); op == nil {
			return nil, fmt.Errorf("unknown verb %q", verb)
		}
	}
	return op, r.err
}

func (r *reader) submit(tag uint64) core.Op {
	op := &core.Submit{
		Tag: tag, Job: r.job(r.Word(2)), Deadline: r.instant("until"), Meta: r.meta(), Window: r.instant("window"),
		DebounceMs: uint32(r.span("debounce").Milliseconds()),
	}
	op.Watch = map[string]core.Watch{
		"stream": core.WatchStream, "outcome": core.WatchOutcome, "run": core.WatchRun,
	}[r.Option("watch")]
	return op
}

// job reads the options of a submission.
func (r *reader) job(queue string) *core.Job {
	j := &core.Job{
		Queue: queue, ID: r.id("id"), Type: r.Option("type"), Body: r.bytes("body"),
		Origin:   protocols[r.Word(0)[0]],
		Priority: int64(r.number("priority")), CreatedAt: r.instant("created"), ReadyAt: r.instant("at"),
		ExpiresAt: r.instant("expires"), StartBefore: r.instant("start-before"), LeaseFor: r.span("for"),
		MaxAttempts: r.count("max-attempts"), MaxFails: r.count("max-fails"), DeadFor: r.span("dead-for"),
		UniqueUntil: r.instant("unique-until"), UniqueStart: r.flag("unique-start"),
		RetainUntil: r.instant("retain-until"), RetainFor: r.span("retain-for"), Ephemeral: r.flag("ephemeral"),
		ScheduledOrder: r.flag("scheduled-order"), After: r.seqs("after"), PriorFails: r.count("prior-fails"),
		Parent: uint64(r.number("parent")), Batch: uint64(r.number("batch")), Tags: r.words("tags"),
		Timeline: uint16(r.count("timeline")),
		Trace:    r.Option("trace"), SeqOrder: r.flag("seq-order"), Tallies: core.Tallies(r.count("tallies")),
		Own:  core.PolicyFields(r.count("own")),
		Cost: r.count("cost"),
	}
	if class := r.Option("prior-failure"); class != "" {
		j.Failure = &core.Failure{Type: class}
	}
	if r.flag("backoff") {
		j.Backoff = core.BackoffFaktory
	}
	j.OnBroken = map[string]core.OnBroken{
		"release": core.BrokenReleases, "fail": core.BrokenFails, "drop": core.BrokenDrops,
	}[r.Option("on-broken")]
	if r.flag("bury") {
		j.Exhausted = core.ExhaustedBury
	}
	if r.flag("lease-end-fails") {
		j.LeaseEnd = core.LeaseEndFail
	}
	if k := r.Option("join"); k != "" {
		j.Unique, j.UniqueKey = core.UniqueCoalesce, k
	}
	if k := r.Option("only"); k != "" {
		j.Unique, j.UniqueKey = core.UniqueRefuse, k
	}
	if k := r.Option("replace"); k != "" {
		j.Unique, j.UniqueKey = core.UniqueReplace, k
	}
	return j
}

func (r *reader) lease(tag uint64) core.Op {
	op := &core.Lease{
		Tag: tag, Deadline: r.instant("until"), Worker: r.Option("worker"), LeaseFor: r.span("for"),
		Version: r.Option("version"),
		Max:     int(r.number("max")), Min: int(r.number("min")), MaxBytes: int(r.number("max-bytes")),
	}
	op.Holder = map[byte]core.Holder{
		'w': core.HeldByNobody, 'g': core.HeldByConn, 'f': core.HeldByWorker, 'i': core.HeldByConn,
		'h': core.HeldByWorker,
	}[r.Word(0)[0]]
	if op.Holder == core.HeldByWorker && op.Worker == "" {
		op.Worker = r.Word(0)
	}
	op.Pick = map[string]core.Pick{
		"": core.PickInOrder, "random": core.PickAtRandom, "priority": core.PickByPriority, "first": core.PickFirst,
	}[r.Option("pick")]
	if len(r.Words) > 2 {
		op.Queues = append([]string{}, r.Words[2:]...)
	} else if !r.flag("able") {
		op.Queues = []string{}
	}
	return op
}

func (r *reader) jobOp(verb string, tag uint64) core.Op {
	ref, err := r.p.ref(r.Word(2))
	r.fail(err)
	switch verb {
	case "complete":
		return &core.Complete{Tag: tag, Ref: ref, If: r.condition(), Authority: r.claim(), Result: r.bytes("result")}
	case "fail":
		f := &core.Failure{
			Type: r.Option("type"), Message: r.Option("message"), Data: r.bytes("data"), Group: r.Option("group"),
		}
		if r.flag("silent") {
			f = nil
		}
		return &core.Fail{
			Tag: tag, Ref: ref, If: r.condition(), Authority: r.claim(), Failure: f, RetryAt: r.instant("retry-at"),
			Final: r.flag("final"),
		}
	case "report":
		return &core.Report{
			Tag: tag, Ref: ref, If: r.condition(), Authority: r.claim(), ExtendUntil: r.instant("extend"),
			LeaseUntil: r.instant("lease-until"), Heartbeat: r.flag("heartbeat"),
			Progress: core.Progress{
				Num: r.count("num"), Den: r.count("den"), Text: r.Option("text"), Verbatim: r.bytes("verbatim"),
			},
		}
	case "data", "warn":
		return &core.SendData{
			Tag: tag, Ref: ref, Authority: r.claim(), Warning: verb == "warn", Data: []byte(r.Word(3)),
		}
	case "await":
		return &core.Await{Tag: tag, Ref: ref, Deadline: r.instant("until")}
	case "cancel":
		op := &core.Cancel{Tag: tag, Ref: ref, If: r.condition(), Also: r.refs("also")}
		if r.flag("refuse") {
			op.Dependents = core.DependentsRefuse
		}
		if r.flag("signal") {
			op.Running = core.RunningSignal
		}
		return op
	case "enqueue":
		return &core.Enqueue{Tag: tag, Ref: ref, If: r.condition()}
	case "log":
		return &core.AppendLog{Tag: tag, Ref: ref, If: r.condition(), Authority: r.claim(), Lines: r.lines()}
	case "resubmit":
		return &core.Resubmit{Tag: tag, Ref: ref, If: r.condition()}
	case "rerun":
		return &core.Rerun{Tag: tag, Ref: ref, If: r.condition()}
	case "bury":
		return &core.Bury{Tag: tag, Ref: ref, If: r.condition()}
	}
	return &core.Release{Tag: tag, Ref: ref, Epoch: r.count("epoch")}
}

func (r *reader) queueOp(verb string, tag uint64) core.Op {
	name := r.Word(2)
	switch verb {
	case "create":
		return &core.CreateQueue{Tag: tag, Queue: name}
	case "drop":
		return &core.DropQueue{
			Tag: tag, Queue: name, FoldCase: r.flag("fold-case"), Limit: int(r.number("limit")),
			Cursor: uint64(r.number("cursor")),
		}
	case "pause", "resume":
		return &core.PauseQueue{Tag: tag, Queue: name, Paused: verb == "pause", For: r.span("for")}
	case "limit":
		return &core.SetQueueMax{Tag: tag, Queue: name, Max: core.QueueMax{
			High: r.count("high"), Normal: r.count("normal"), Low: r.count("low"),
		}}
	case "throttle":
		if t := r.throttle(); t != (core.Throttle{}) {
			return &core.PutLimit{Tag: tag, Limit: core.Limit{
				Selector: core.InQueue(name, core.ScopeQueue, ""), Throttle: t, FromConfig: true,
			}}
		}
		return &core.RemoveLimit{Tag: tag, ID: core.LimitID{Queue: name}, FromConfig: true}
	case "keep-done":
		return &core.KeepDone{
			Tag: tag, Queue: name, Retention: core.Retention{For: r.span("for"), Count: int(r.number("count"))},
		}
	case "move-spent":
		return &core.MoveSpent{Tag: tag, Queue: name, Rule: core.SpentRule{
			Leases: r.count("leases"), To: r.Option("to"), ExpiresIn: r.span("expires-in"),
			FromMove: r.flag("from-move"),
		}}
	case "finished":
		op := &core.ListFinished{Tag: tag, Queue: name, Offset: int(r.number("offset")), Limit: int(r.number("limit"))}
		if v := r.Option("ref"); v != "" {
			var err error
			op.Ref, err = r.p.ref(v)
			r.fail(err)
		}
		return op
	case "purge":
		return r.purge(name, tag)
	case "reset":
		return &core.ResetCounters{Tag: tag, Origin: r.protocol()}
	case "list-queues":
		return &core.ListQueues{Tag: tag, Prefix: name, Offset: int(r.number("offset")), Limit: int(r.number("limit"))}
	case "inspect-queue":
		return &core.InspectQueue{Tag: tag, Queue: name}
	}
	return &core.ListJobs{
		Tag: tag, Queue: name, State: r.state("state"), Offset: int(r.number("offset")), Limit: int(r.number("limit")),
		Cursor: uint64(r.number("cursor")), Brief: true,
	}
}

func (r *reader) purge(name string, tag uint64) core.Op {
	op := &core.Purge{
		Tag: tag, Queue: name, Origin: r.protocol(), Limit: int(r.number("limit")), Cursor: uint64(r.number("cursor")),
		Drop: r.flag("drop"),
	}
	for _, s := range strings.Split(r.Option("states"), ",") {
		for _, x := range core.States {
			if x.String() == s {
				op.States = append(op.States, x)
			}
		}
	}
	return op
}

func (r *reader) inspect(tag uint64) core.Op {
	if key := r.Option("unique"); key != "" {
		return &core.Inspect{Tag: tag, ByUnique: true, UniqueKey: key, Queue: r.Option("queue"), Brief: r.flag("brief")}
	}
	ref, err := r.p.ref(r.Word(2))
	r.fail(err)
	return &core.Inspect{Tag: tag, Ref: ref, Brief: r.flag("brief"), Timeline: r.flag("timeline")}
}

func (r *reader) groupOp(verb string, tag uint64) core.Op {
	number, _ := strconv.ParseUint(r.Word(2), 10, 64) // zero where the verb needs none
	switch verb {
	case "batch":
		op := &core.OpenBatch{
			Tag: tag, Parent: uint64(r.number("parent")), Description: r.Option("text"),
			OpenUntil: r.instant("open-until"),
		}
		callback := func(name string) *core.Job {
			if queue := r.Option(name); queue != "" {
				exhausted := core.ExhaustedBury
				if r.flag("no-dead") {
					exhausted = core.ExhaustedFinish
				}
				return &core.Job{
					Queue: queue, ID: r.Option(name + "-id"), Origin: core.Faktory, MaxFails: r.count("max-fails"),
					Exhausted: exhausted, Batch: uint64(r.number(name + "-batch")),
				}
			}
			return nil
		}
		op.Complete, op.Success = callback("complete"), callback("success")
		return op
	case "inspect-batch":
		return &core.InspectBatch{Tag: tag, Batch: number}
	case "purge-batches":
		return &core.PurgeBatches{Tag: tag, Limit: int(r.number("limit")), Cursor: uint64(r.number("cursor"))}
	}
	return &core.CloseBatch{Tag: tag, Batch: number, Reopen: verb == "reopen-batch"}
}
