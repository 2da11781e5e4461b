package machine_test

import (
	"fmt"
	"strings"

	"broker/core"
)

// condition reads a condition: from=ready,leased epoch=2 in=QUEUE by=WORKER.
func (r *reader) condition() core.Condition {
	is := core.Condition{
		HasEpoch: r.flag("epoch"), Epoch: r.count("epoch"), Queue: r.Option("in"), Worker: r.Option("by"),
		LeasedAt: r.instant("since"),
	}
	if v := r.Option("from"); v != "" {
		for _, name := range strings.Split(v, ",") {
			is.States = append(is.States, r.stateNamed(name))
		}
	}
	return is
}

// refs reads a list of references.
func (r *reader) refs(name string) (all []core.Ref) {
	v := r.Option(name)
	if v == "" {
		return nil
	}
	for _, s := range strings.Split(v, ",") {
		ref, err := r.p.ref(s)
		r.fail(err)
		all = append(all, ref)
	}
	return all
}

// words reads a list of words; "none" is the empty list.
func (r *reader) words(name string) []string {
	v := r.Option(name)
	if v == "" || v == "none" {
		return nil
	}
	return strings.Split(v, ",")
}

func (r *reader) changeOp(verb string, tag uint64) core.Op {
	ref, err := r.p.ref(r.Word(2))
	r.fail(err)
	is := r.condition()
	switch verb {
	case "update":
		return &core.Update{Tag: tag, Ref: ref, If: is, Set: r.set("at")}
	case "move":
		op := &core.Move{
			Tag: tag, Ref: ref, If: is, Authority: r.claim(), Queue: r.Word(3), ReadyAt: r.instant("at"),
			After: r.refs("after"),
			Set:   r.set("set-at"),
		}
		if r.flag("after-none") {
			op.After = []core.Ref{}
		}
		return op
	case "lease-job":
		return &core.LeaseJob{
			Tag: tag, Ref: ref, If: is, Worker: r.Option("to"), LeaseFor: r.span("for"), ByConn: r.flag("by-conn"),
			Dead: r.flag("dead"),
		}
	case "transfer":
		return &core.TransferLease{
			Tag: tag, Ref: ref, Epoch: r.count("epoch"), Worker: r.Option("to"), LeaseFor: r.span("for"),
		}
	}
	r.fail(fmt.Errorf("unknown verb %q", verb))
	return nil
}

// set reads the fields that change; at is the name of the option for ReadyAt.
func (r *reader) set(at string) (set core.JobChange) {
	has := func(name string) bool { return r.Option(name) != "" }
	point(has("priority"), &set.Priority, int64(r.number("priority")))
	point(has("type"), &set.Type, strings.TrimPrefix(r.Option("type"), "-"))
	point(has("tags"), &set.Tags, r.words("tags"))
	point(has("body"), &set.Body, core.Body{Bytes: r.bytes("body")})
	if r.flag("args") && set.Body != nil {
		set.Body.Format = core.Args
	}
	point(has(at), &set.ReadyAt, r.instantOrNow(at))
	point(has("expires"), &set.ExpiresAt, r.instantOrNever("expires"))
	point(has("for"), &set.LeaseFor, r.span("for"))
	point(has("max-attempts"), &set.MaxAttempts, r.count("max-attempts"))
	point(has("max-fails"), &set.MaxFails, r.count("max-fails"))
	point(has("attempts"), &set.Attempts, r.count("attempts"))
	point(has("fails"), &set.Fails, r.count("fails"))
	point(has("backoff"), &set.Backoff, core.Backoff(r.count("backoff")))
	point(has("exhausted"), &set.Exhausted, core.Exhausted(r.count("exhausted")))
	point(has("attributes"), &set.Attributes, r.bytes("attributes"))
	return set
}

func point[T any](is bool, to **T, value T) {
	if is {
		*to = &value
	}
}

func (r *reader) instantOrNow(name string) core.Instant {
	if r.Option(name) == "now" {
		return 0
	}
	return r.instant(name)
}

func (r *reader) instantOrNever(name string) core.Instant {
	if r.Option(name) == "never" {
		return 0
	}
	return r.instant(name)
}
