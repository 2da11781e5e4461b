package console

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestListsRefuseUnknownParameters(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.dies("Timeout", "no answer")
	page := f.get("/dead?eror=Timeout")
	f.wants(page, "<strong>eror</strong>: there is no such filter")
	if strings.Contains(page, "no answer") {
		t.Error("the list shows jobs that the filter may not choose")
	}
	if page := f.get("/dead?error_class=Timeout&sort=-died&hold=yes"); strings.Contains(page, "no such filter") {
		t.Errorf("known parameters are refused:\n%s", page)
	}
}

func TestListsOfWaitingJobsOfferOnlyActionsForThem(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"scheduled", "retrying"} {
		for _, action := range []string{"stop", "rerun"} {
			if slices.ContainsFunc(bulkActions(state), func(c choice) bool { return c.Value == action }) {
				t.Errorf("the list of %s jobs offers %s", state, action)
			}
		}
	}
}

func TestSpansOfTimeStayRelativeInTheFormAndNotInActions(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.dies("Timeout", "no answer")
	f.advance(time.Minute)
	page := f.get("/dead?died_from=1h&died_to=2020-01-31T14:05")
	f.wants(page, `<input name="died_from" value="1h">`)
	f.wants(page, `<input name="died_to" value="2020-01-31T14:05:00" type="datetime-local" step="1">`)
	from := f.clock.Now().Time().Add(-time.Hour).UTC().Format(time.RFC3339Nano)
	f.wants(f.get("/dead?died_from=1h"), `name="filter" value="died_from=`+url.QueryEscape(from)+`&amp;state=dead"`)
}

func TestPagesOfUnknownJobsAndQueuesExplainWhy(t *testing.T) {
	t.Parallel()
	f := setup(t)
	job := f.get("/jobs/01a20bd5-71e9-7add-9f5a-51fc9b1c6dff")
	f.wants(job, "It has ended and is not kept, or it was never submitted.")
	f.wants(job, `href="jobs" aria-current="page"`)
	f.wants(f.get("/queues/nothing"), "A queue appears with its first job.")
}
