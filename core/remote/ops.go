package remote

import (
	"fmt"
	"reflect"

	"broker/core"
)

// opKind is how one kind of operation is encoded.
type opKind struct {
	new  func() core.Op
	code func(*coder, core.Op) // nil: in CBOR
}

// frequent is an operation that is encoded by hand.
func frequent[T any, P interface {
	*T
	core.Op
}](code func(*coder, P),
) opKind {
	return opKind{func() core.Op { return P(new(T)) }, func(c *coder, op core.Op) { code(c, op.(P)) }}
}

// rare is an operation that is encoded in CBOR, as a map from the names of its fields.
func rare[T any, P interface {
	*T
	core.Op
}]() opKind {
	return opKind{new: func() core.Op { return P(new(T)) }}
}

// opKinds are all operations. Their positions are on the wire: an operation that is added comes last. A test compares
// the list with the source of package core.
var opKinds = []opKind{
	frequent(submit), frequent(lease), frequent(complete), frequent(fail), frequent(report), frequent(sendData),
	frequent(release), frequent(register), frequent(unregister), frequent(sleep),
	rare[core.CancelLease](), rare[core.CancelWaits](), frequent(await), frequent(inspect), frequent(holdQueue),
	rare[core.Atomic](),
	rare[core.Update](), rare[core.Move](), rare[core.TransferLease](), rare[core.Cancel](), rare[core.Enqueue](),
	rare[core.Bury](), rare[core.ListClients](), rare[core.ListWorkers](), rare[core.DisconnectClient](),
	rare[core.NameClient](), rare[core.Subscribe](), rare[core.Find](), rare[core.KeepDone](),
	rare[core.ListFinished](), rare[core.PutLimit](), rare[core.RemoveLimit](), rare[core.ShareQueue](),
	rare[core.ListLimits](), rare[core.AppendLog](), rare[core.ReadSeries](), rare[core.ReadHistograms](),
	rare[core.CreateQueue](), rare[core.DropQueue](), rare[core.PauseQueue](), rare[core.SetQueueMax](),
	rare[core.Drain](), rare[core.Purge](), rare[core.ResetCounters](), rare[core.ListJobs](),
	rare[core.ListQueues](), rare[core.ListQueueValues](), rare[core.InspectQueue](), rare[core.LastCommit](),
	rare[core.ReadStats](), rare[core.ReadMeta](), rare[core.WriteMeta](), rare[core.OpenBatch](),
	rare[core.CloseBatch](), rare[core.InspectBatch](), rare[core.ListBatches](), rare[core.PurgeBatches](),
	rare[core.Resubmit](), rare[core.Rerun](), rare[core.LeaseJob](), rare[core.MoveSpent](),
	rare[core.WriteDocuments](), rare[core.ReadDocuments](), rare[core.PutPolicy](), rare[core.ListPolicies](),
	rare[core.PutSchedule](), rare[core.PauseSchedule](), rare[core.RemoveSchedule](), rare[core.RunSchedule](),
	rare[core.ListSchedules](), rare[core.Annotate](),
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
		*op = kind.new()
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

func operations(c *coder, all *[]core.Op) { slice(c, all, operation) }

func submit(c *coder, o *core.Submit) {
	unsigned(c, &o.Tag)
	optional(c, &o.Job, job)
	unsigned(c, &o.Watch)
	c.flags(&o.Info)
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
