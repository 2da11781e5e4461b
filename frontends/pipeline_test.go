package frontends_test

import (
	"fmt"
	"slices"
	"testing"

	"broker/access"
	"broker/core"
	"broker/frontends"
)

// scriptedBroker returns prepared replies and notes what it was asked.
type scriptedBroker struct {
	core.Broker
	ops     []core.Op
	replies []core.Reply
	clients int // opened and not closed
}

func (b *scriptedBroker) Open(core.ClientOptions) core.ClientID {
	b.clients++
	return 7
}

func (b *scriptedBroker) Close(core.ClientID) { b.clients-- }

func (b *scriptedBroker) Do(_ core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	b.ops = append(b.ops, ops...)
	return append(into, b.replies...)
}

// transcript writes down what a pipeline wants written.
type transcript []string

func (t *transcript) Respond(request *string, r *core.Reply) {
	if r == nil {
		*t = append(*t, *request)
		return
	}
	*t = append(*t, fmt.Sprintf("%s=%d", *request, r.Kind))
}

func (t *transcript) Push(r *core.Reply) { *t = append(*t, fmt.Sprintf("push %d", r.Tag)) }

func TestPipelineAnswersInTheOrderOfRequests(t *testing.T) {
	t.Parallel()
	var p frontends.Pipeline[string]
	tags := uint64(40)
	p.Begin(&tags)
	p.Local("echo")
	first := p.Expect("submit")
	p.Ask(&core.Submit{Tag: first})
	sleep := p.Expect("sleep")
	p.Ask(&core.Sleep{Tag: sleep})
	p.Local("version")
	last := p.Expect("grab")
	p.Ask(&core.Lease{Tag: last})
	p.Local("echo again")
	if first != 42 || last != 45 || tags != 46 || p.Len() != 6 || p.Ops() != 3 {
		t.Fatalf("tags %d and %d of %d, %d requests, %d operations", first, last, tags, p.Len(), p.Ops())
	}
	b := &scriptedBroker{replies: []core.Reply{
		{Kind: core.Ended, Tag: 3},
		{Kind: core.Submitted, Tag: first},
		{Kind: core.Assigned, Tag: last},
		{Kind: core.Woken, Tag: sleep},
	}}
	var got transcript
	p.Run(b, 1, &got)
	want := transcript{
		"push 3", "echo", fmt.Sprintf("submit=%d", core.Submitted), "version", fmt.Sprintf("grab=%d", core.Assigned),
		fmt.Sprintf("sleep=%d", core.Woken), "echo again",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}

	p.Reset()
	got, b.replies = nil, []core.Reply{{Kind: core.Woken, Tag: sleep}}
	p.Run(b, 1, &got)
	if want := (transcript{fmt.Sprintf("push %d", sleep)}); !slices.Equal(got, want) {
		t.Errorf("after a reset: got %q, want %q", got, want)
	}
}

func TestPooledOperationsStayInPlace(t *testing.T) {
	t.Parallel()
	var p frontends.Pipeline[string]
	tags := uint64(0)
	p.Begin(&tags)
	var ops []*core.Submit
	for i := range 100 {
		op := p.Submits.Next()
		op.Tag = uint64(i)
		ops = append(ops, op)
	}
	for i, op := range ops {
		if op.Tag != uint64(i) {
			t.Fatalf("operation %d has the tag %d", i, op.Tag)
		}
	}
	p.Reset()
	if op := p.Submits.Next(); op.Tag != 0 || p.Submits.Len() != 1 {
		t.Errorf("after a reset the first of %d operations has the tag %d", p.Submits.Len(), op.Tag)
	}
}

func TestUndeliveredJobsAreReleased(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unsent int
		want   []uint64
	}{{15, []uint64{2, 3}}, {10, []uint64{3}}, {1, []uint64{3}}, {0, nil}, {40, []uint64{0, 1, 2, 3}}} {
		b := &scriptedBroker{}
		d := frontends.Deliveries{}
		out := frontends.Outbox{}
		for seq := range uint64(4) {
			out.WriteString("0123456789")
			d.Add(&out, &core.Reply{Seq: seq, Lease: core.Grant{Epoch: uint32(seq) + 100}})
		}
		out.Sent(25) // jobs 0 and 1, half of job 2
		d.Release(access.Unrestricted(b, core.Workq), &out, c.unsent)
		var got []uint64
		for _, op := range b.ops {
			r := op.(*core.Release)
			if got = append(got, r.Ref.Seq); uint64(r.Epoch) != r.Ref.Seq+100 {
				t.Errorf("job %d is released with the epoch %d", r.Ref.Seq, r.Epoch)
			}
		}
		if !slices.Equal(got, c.want) || b.clients != 0 {
			t.Errorf("%d bytes unsent: released %d, want %d; %d clients left open", c.unsent, got, c.want, b.clients)
		}
	}
}

func TestWrittenCountsBytesThatLeft(t *testing.T) {
	t.Parallel()
	var out frontends.Outbox
	out.WriteString("sent")
	out.Sent(4)
	out.WriteString("kept")
	out.Put(append(out.Buf(), "held"...), 9)
	if out.Written() != 12 {
		t.Fatalf("%d bytes written, want 12", out.Written())
	}
	out.Refuse([]byte("a longer refusal"))
	if out.Written() != 12 || out.Len() != len("kepta longer refusal") {
		t.Errorf("after a refusal: %d bytes written, want 12; %q", out.Written(), out.Buf())
	}
}
