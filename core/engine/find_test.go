package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"broker/core"
	"broker/core/engine"
)

// fill submits jobs. Every third job dies, and all payloads are only on disk.
func fill(t *testing.T, o func(*engine.Options), jobs, bodyBytes int) (*fixture, core.ClientID) {
	t.Helper()
	d := setup(t, func(opts *engine.Options) {
		opts.CacheBytes = 1
		if o != nil {
			o(opts)
		}
	})
	c := d.client(core.Faktory)
	for i := range jobs {
		body := strings.Repeat("0", bodyBytes-4) + fmt.Sprintf("%04d", i)
		r := d.one(c, &core.Submit{Job: &core.Job{
			ID: fmt.Sprintf("id-%d", i), Queue: "q", Type: "Type", Body: []byte(body), Origin: core.Faktory,
			Exhausted: core.ExhaustedBury,
		}})
		if i%3 == 0 {
			d.one(c, &core.Fail{Ref: core.Ref{Seq: r.Seq}, Authority: core.ByAnyone, Failure: &core.Failure{
				Type: []string{"Error", "Timeout"}[i%2], Message: fmt.Sprintf("Number %d Went Wrong", i),
			}})
		}
		d.Flush()
	}
	return d, c
}

// listAll lists all pages of a Find and returns the client's ids of the jobs.
func (d *fixture) listAll(c core.ClientID, op core.Find) (ids []string, pages int) {
	d.t.Helper()
	for {
		pages++
		r := d.one(c, &op)
		if r.Kind != core.Listed {
			d.t.Fatalf("page %d: %+v", pages, r)
		}
		for _, i := range r.Jobs {
			ids = append(ids, i.Job.ID)
		}
		if op.Cursor = r.NextCursor; op.Cursor == "" {
			return ids, pages
		}
	}
}

func TestFindLooksIntoRecords(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]func(*engine.Options){
		"on disk": nil, "in memory": func(o *engine.Options) { o.Durability = engine.None },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, c := fill(t, o, 40, 2000)
			for _, x := range []struct {
				name   string
				filter core.Filter
				want   string
			}{
				{"a failure's type", core.Filter{ErrorClass: "Timeout"}, "id-3 id-9 id-15 id-21 id-27 id-33 id-39"},
				{
					"no type of a failure",
					core.Filter{NoErrorClass: true, IDPrefix: "id-1"},
					"id-1 id-10 id-11 id-13 id-14 id-16 id-17 id-19",
				},
				{"text of a failure", core.Filter{Text: "number 12 went"}, "id-12"},
				{
					"an id",
					core.Filter{IDPrefix: "id-2"},
					"id-2 id-20 id-21 id-22 id-23 id-24 id-25 id-26 id-27 id-28 id-29",
				},
				{
					"text of an id, in a state",
					core.Filter{Text: "ID-1", States: []core.State{core.Dead}},
					"id-12 id-15 id-18",
				},
				{"a body", core.Filter{BodyText: "0017"}, "id-17"},
				{"nothing", core.Filter{BodyText: "no such body"}, ""},
			} {
				for _, limit := range []int{2, 1000} {
					ids, _ := d.listAll(c, core.Find{Filter: x.filter, Limit: limit})
					if got := strings.Join(ids, " "); got != x.want {
						t.Errorf("%s, %d a page: found %s, want %s", x.name, limit, got, x.want)
					}
				}
			}
		})
	}
}

// TestFindReadsABoundedNumberOfBytes looks for text in more bytes of bodies than a call may read.
func TestFindReadsABoundedNumberOfBytes(t *testing.T) {
	t.Parallel()
	d, c := fill(t, nil, 20, 1<<20)
	ids, pages := d.listAll(c, core.Find{Filter: core.Filter{BodyText: "00019"}})
	if len(ids) != 1 || ids[0] != "id-19" || pages < 3 {
		t.Errorf("found %v on %d pages", ids, pages)
	}
	first := d.one(c, &core.Find{Filter: core.Filter{BodyText: "00019"}})
	if !first.Stopped || len(first.Jobs) > 0 {
		t.Errorf("the first page: stopped %v, %d jobs", first.Stopped, len(first.Jobs))
	}
}

// TestListsDoNotReadBodies finds all jobs with their records, and without them.
func TestListsDoNotReadBodies(t *testing.T) {
	t.Parallel()
	d, c := fill(t, nil, 6, 2000)
	for _, i := range d.one(c, &core.Find{}).Jobs {
		if i.Job == nil || i.Job.Body != nil || i.BodyBytes != 2000 || i.Type != "Type" ||
			i.Fails > 0 && i.Failure == nil {
			t.Errorf("%+v, job %+v", i, i.Job)
		}
	}
	for _, i := range d.one(c, &core.Find{Brief: true}).Jobs {
		if i.Job != nil || i.BodyBytes != 2000 || i.Type != "Type" {
			t.Errorf("in brief: %+v", i)
		}
	}
}
