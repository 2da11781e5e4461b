package console

import (
	"net/url"
	"strings"
	"testing"

	"broker/operate/service"
)

// Each column that says so sorts the list, from the largest number or the first name on; a second click turns it round.
func TestColumnsSortTheListOfQueues(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, queue := range []string{"a", "b<i>"} {
		if _, err := f.service.Submit(t.Context(), f.caller, []service.Submission{{Queue: queue}},
			service.SubmitOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.post("/queues/a", url.Values{"do": {"pause"}})
	for i := range queueColumns {
		c := &queueColumns[i]
		if c.Sort == "" {
			continue
		}
		first, then := c.Sort, "-"+c.Sort
		if c.Right {
			first, then = then, first
		}
		f.wants(f.get("/queues?sort=-done"), `<a href="queues?sort=`+first+`">`+c.Label+"</a>")
		f.wants(f.get("/queues?sort="+first), `aria-sort="`, `<a href="queues?sort=`+then+`">`+c.Label+" ")
	}
	page := f.get("/queues")
	f.wants(page, `<a class="name" href="queues/b%3Ci%3E">b&lt;i&gt;</a>`,
		`href="queues/a">a</a> <span class="state state-paused">paused</span></td>`,
		`data-label="Ready"><a class="name" href="jobs?queue=b%3Ci%3E&amp;state=ready">1</a>`,
		`data-label="Workers"><span class="bad">0</span>`, `data-label="Dead"><span class="zero">0</span>`)
	heads, cells := strings.Count(page, `<th scope="col"`), strings.Count(page, "data-label=")
	if want := 2 * heads; cells != want { // the box to select a queue has both
		t.Errorf("%d cells below %d heads of 2 queues", cells, heads)
	}
}
