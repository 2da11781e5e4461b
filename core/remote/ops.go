package remote

import (
	"fmt"
	"reflect"

	"broker/core"
)

// opKind is how one kind of operation is encoded, and what becomes of it when the leader changes.
type opKind struct {
	new   func() core.Op
	code  func(*coder, core.Op) // nil: in CBOR
	clear func(core.Op)         // makes it a new one again; nil if code is
	fate  fate
}

// frequent is an operation that is encoded by hand.
func frequent[T any, P interface {
	*T
	core.Op
}](code func(*coder, P), f fate,
) opKind {
	return opKind{
		new:   func() core.Op { return P(new(T)) },
		code:  func(c *coder, op core.Op) { code(c, op.(P)) },
		clear: func(op core.Op) { *op.(P) = *new(T) },
		fate:  f,
	}
}

// rare is an operation that is encoded in CBOR, as a map from the names of its fields.
func rare[T any, P interface {
	*T
	core.Op
}](f fate,
) opKind {
	return opKind{new: func() core.Op { return P(new(T)) }, fate: f}
}

// opKinds are all operations. Their positions are on the wire: an operation that is added comes last. A test compares
// the list with the source of package core.
var opKinds = []opKind{
	frequent(submit, changes),
	frequent(lease, registers),
	frequent(complete, changes),
	frequent(fail, changes),
	frequent(report, repeats),
	frequent(sendData, never),
	frequent(release, repeats),
	frequent(register, registers),
	frequent(unregister, registers),
	frequent(sleep, registers),
	rare[core.CancelLease](registers),
	rare[core.CancelWaits](registers),
	frequent(await, reads),
	frequent(inspect, reads),
	frequent(holdQueue, registers),
	rare[core.Atomic](changes),
	rare[core.Update](changes),
	rare[core.Move](changes),
	rare[core.TransferLease](changes),
	rare[core.Cancel](changes),
	rare[core.Enqueue](changes),
	rare[core.Bury](changes),
	rare[core.ListClients](reads),
	rare[core.ListWorkers](reads),
	rare[core.DisconnectClient](never),
	rare[core.NameClient](registers),
	rare[core.Subscribe](registers),
	rare[core.Find](reads),
	rare[core.KeepDone](changes),
	rare[core.ListFinished](reads),
	rare[core.PutLimit](changes),
	rare[core.RemoveLimit](changes),
	rare[core.ShareQueue](changes),
	rare[core.ListLimits](reads),
	rare[core.AppendLog](changes),
	rare[core.ReadSeries](reads),
	rare[core.ReadHistograms](reads),
	rare[core.CreateQueue](changes),
	rare[core.DropQueue](changes),
	rare[core.PauseQueue](changes),
	rare[core.SetQueueMax](changes),
	rare[core.Drain](changes),
	rare[core.Purge](changes),
	rare[core.ResetCounters](changes),
	rare[core.ListJobs](reads),
	rare[core.ListQueues](reads),
	rare[core.ListQueueValues](reads),
	rare[core.InspectQueue](reads),
	rare[core.LastCommit](reads),
	rare[core.ReadStats](reads),
	rare[core.ReadMeta](reads),
	rare[core.WriteMeta](changes),
	rare[core.OpenBatch](changes),
	rare[core.CloseBatch](changes),
	rare[core.InspectBatch](reads),
	rare[core.ListBatches](reads),
	rare[core.PurgeBatches](changes),
	rare[core.Resubmit](changes),
	rare[core.Rerun](changes),
	rare[core.LeaseJob](registers),
	rare[core.MoveSpent](changes),
	rare[core.WriteDocuments](changes),
	rare[core.ReadDocuments](reads),
	rare[core.PutPolicy](changes),
	rare[core.ListPolicies](reads),
	rare[core.PutSchedule](changes),
	rare[core.PauseSchedule](changes),
	rare[core.RemoveSchedule](changes),
	rare[core.RunSchedule](changes),
	rare[core.ListSchedules](reads),
}

// fateOf is what becomes of an operation when the leader changes.
func fateOf(op core.Op) fate {
	if l, is := op.(*core.LeaseJob); is && !l.ByConn {
		return changes
	}
	return opKinds[opNumbers[reflect.TypeOf(op)]].fate
}

// opNumbers are the positions in opKinds.
var opNumbers = func() map[reflect.Type]uint8 {
	all := make(map[reflect.Type]uint8, len(opKinds))
	for i, k := range opKinds {
		all[reflect.TypeOf(k.new())] = uint8(i)
	}
	return all
}()

// operation is one operation.
func operation(c *coder, op *core.Op) {
	var number uint8
	if !c.reading {
		var known bool
		if number, known = opNumbers[reflect.TypeOf(*op)]; !known {
			panic(fmt.Sprintf("an operation of no kind: %T", *op))
		}
	}
	unsigned(c, &number)
	if int(number) >= len(opKinds) || c.err != nil {
		c.fail()
		return
	}
	kind := &opKinds[number]
	if c.reading {
		*op = c.spare.take(number)
	}
	list, isAtomic := (*op).(*core.Atomic)
	switch {
	case isAtomic:
		atomicList(c, list)
	case kind.code != nil:
		kind.code(c, *op)
	default:
		c.cbor(*op)
	}
}

// spareOps are frequent operations that were applied, for those that are read next: the core does not keep them.
type spareOps [][]core.Op // by kind

// maxSpare is how many operations of a kind are kept.
const maxSpare = 64

// take returns an operation of a kind with nothing set.
func (s *spareOps) take(number uint8) core.Op {
	if s != nil && int(number) < len(*s) {
		if of := (*s)[number]; len(of) > 0 {
			op := of[len(of)-1]
			(*s)[number] = of[:len(of)-1]
			return op
		}
	}
	return opKinds[number].new()
}

// give keeps operations that were applied.
func (s *spareOps) give(ops []core.Op) {
	if *s == nil {
		*s = make(spareOps, len(opKinds))
	}
	for _, op := range ops {
		number := opNumbers[reflect.TypeOf(op)]
		if kind := &opKinds[number]; kind.clear != nil && len((*s)[number]) < maxSpare {
			kind.clear(op)
			(*s)[number] = append((*s)[number], op)
		}
	}
}

func operations(c *coder, all *[]core.Op) { slice(c, all, operation) }

func submit(c *coder, o *core.Submit) {
	unsigned(c, &o.Tag)
	optional(c, &o.Job, job)
	unsigned(c, &o.Watch)
	c.flags(&o.Info)
	unsigned(c, &o.Again)
	unsigned(c, &o.DebounceMs)
	signed(c, &o.Deadline)
	slice(c, &o.Meta, metaEntry)
	signed(c, &o.Window)
}

func lease(c *coder, o *core.Lease) {
	unsigned(c, &o.Tag)
	texts(c, &o.Queues)
	unsigned(c, &o.Pick)
	unsigned(c, &o.Holder)
	c.text(&o.Worker)
	c.text(&o.Version)
	signed(c, &o.Deadline)
	signed(c, &o.LeaseFor)
	signed(c, &o.Max)
	signed(c, &o.MaxBytes)
	signed(c, &o.Min)
	c.flags(&o.Late, &o.KeepQueues)
}

func complete(c *coder, o *core.Complete) {
	unsigned(c, &o.Tag)
	ref(c, &o.Ref)
	condition(c, &o.If)
	unsigned(c, &o.Authority)
	c.bytes(&o.Result)
}

func fail(c *coder, o *core.Fail) {
	unsigned(c, &o.Tag)
	ref(c, &o.Ref)
	condition(c, &o.If)
	unsigned(c, &o.Authority)
	optional(c, &o.Failure, failure)
	signed(c, &o.RetryAt)
	c.flags(&o.Final)
}

func report(c *coder, o *core.Report) {
	unsigned(c, &o.Tag)
	ref(c, &o.Ref)
	condition(c, &o.If)
	unsigned(c, &o.Authority)
	progress(c, &o.Progress)
	signed(c, &o.ExtendUntil)
	signed(c, &o.LeaseUntil)
	c.flags(&o.Heartbeat)
}

func sendData(c *coder, o *core.SendData) {
	unsigned(c, &o.Tag)
	ref(c, &o.Ref)
	unsigned(c, &o.Authority)
	c.flags(&o.Warning)
	c.bytes(&o.Data)
}

func release(c *coder, o *core.Release) {
	unsigned(c, &o.Tag)
	ref(c, &o.Ref)
	condition(c, &o.If)
	unsigned(c, &o.Epoch)
}

func register(c *coder, o *core.Register) {
	c.text(&o.Queue)
	signed(c, &o.LeaseFor)
}

func unregister(c *coder, o *core.Unregister) {
	c.text(&o.Queue)
	c.flags(&o.All)
}

func sleep(c *coder, o *core.Sleep) { unsigned(c, &o.Tag) }

func await(c *coder, o *core.Await) {
	unsigned(c, &o.Tag)
	ref(c, &o.Ref)
	signed(c, &o.Deadline)
}

func inspect(c *coder, o *core.Inspect) {
	unsigned(c, &o.Tag)
	ref(c, &o.Ref)
	c.text(&o.UniqueKey)
	c.text(&o.Queue)
	c.flags(&o.ByUnique, &o.Brief, &o.Timeline, &o.Dependents)
}

func holdQueue(c *coder, o *core.HoldQueue) {
	c.text(&o.Queue)
	c.flags(&o.Free)
}

func atomicList(c *coder, o *core.Atomic) {
	unsigned(c, &o.Tag)
	operations(c, &o.Ops)
}
