package machine_test

import (
	"strings"

	"broker/core"
)

// condition reads what must hold of a job: from=ready,leased epoch=2 in=QUEUE by=WORKER.
func (r *reader) condition() core.Condition {
	is := core.Condition{HasEpoch: r.flag("epoch"), Epoch: r.count("epoch"), Queue: r.Option("in"), Worker: r.Option("by")}
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
