package engine_test

import (
	"fmt"
	"testing"

	"broker/core"
	"broker/core/engine"
)

// documents lists all pages.
func (d *fixture) documents(c core.ClientID, prefix string, limit int) (names, values []string) {
	d.t.Helper()
	after := ""
	for {
		r := d.one(c, &core.ReadDocuments{Prefix: prefix, After: after, Limit: limit})
		if r.Kind != core.Answered || r.Answer == nil {
			d.t.Fatalf("documents: %+v", r)
		}
		if len(r.Documents) == 0 {
			return names, values
		}
		for _, e := range r.Documents {
			names, values = append(names, e.Name), append(values, string(e.Value))
			after = e.Name
		}
	}
}

func TestDocumentsAreKeptOnDisk(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	c := d.client(core.Faktory)
	d.one(c, &core.WriteDocuments{Documents: []core.MetaEntry{
		{Name: "a/1", Value: []byte("one")}, {Name: "a/2", Value: []byte("two")}, {Name: "b/1", Value: []byte("other")},
	}})
	r := d.one(c, &core.WriteDocuments{Documents: []core.MetaEntry{
		{Name: "a/1", Value: []byte("uno")}, {Name: "a/3", Value: []byte{}},
	}})
	if r.Kind != core.Accepted || r.Commit == 0 {
		t.Fatalf("write: %+v", r)
	}
	for _, limit := range []int{1, 2, 0} {
		if names, values := d.documents(c, "a/", limit); fmt.Sprint(names, values) != "[a/1 a/2 a/3] [uno two ]" {
			t.Errorf("limit %d: %q %q", limit, names, values)
		}
	}
	d.one(c, &core.WriteDocuments{Documents: []core.MetaEntry{{Name: "a/2"}}})
	if names, _ := d.documents(c, "", 0); fmt.Sprint(names) != "[a/1 a/3 b/1]" {
		t.Errorf("after a removal: %q", names)
	}
}

func TestDocumentsAreStoredWithTheOtherOperationsOfTheirList(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	c := d.client(core.Faktory)
	doc := &core.WriteDocuments{Documents: []core.MetaEntry{{Name: "d", Value: []byte("x")}}}
	r := d.one(c,
		&core.Atomic{Ops: []core.Op{doc, &core.Complete{Ref: core.Ref{ID: "nobody"}, Authority: core.ByAnyone}}})
	if r.Kind != core.Failed {
		t.Fatalf("refused list: %+v", r)
	}
	if names, _ := d.documents(c, "", 0); names != nil {
		t.Errorf("a refused list has stored %q", names)
	}
	r = d.one(c, &core.Atomic{Ops: []core.Op{&core.Submit{Job: &core.Job{Queue: "q"}}, doc}})
	if r.Kind != core.Accepted || len(r.Replies) != 2 {
		t.Fatalf("list: %+v", r)
	}
	if names, _ := d.documents(c, "", 0); fmt.Sprint(names) != "[d]" {
		t.Errorf("the list has stored %q", names)
	}
}

func TestNoDocumentsAreKeptInMemory(t *testing.T) {
	t.Parallel()
	d := setup(t, func(o *engine.Options) { o.Durability = engine.None })
	c := d.client(core.Faktory)
	d.one(c, &core.WriteDocuments{Documents: []core.MetaEntry{{Name: "a", Value: []byte("one")}}})
	if names, _ := d.documents(c, "", 0); names != nil {
		t.Errorf("durability none keeps %q", names)
	}
}
