package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/operate/service"
)

// row is the table row of an error on the page of dead jobs.
func (f *fixture) errorRow(page, class string) string {
	f.t.Helper()
	_, rest, found := strings.Cut(page, ">"+class+"</a>")
	if !found {
		f.t.Fatalf("no row for %s", class)
	}
	row, _, _ := strings.Cut(rest, "</tr>")
	return row
}

// TestErrorsOfOneHourAreSortedByTheirFirstDeath has a small error that began minutes after a large one.
func TestErrorsOfOneHourAreSortedByTheirFirstDeath(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for range 9 {
		f.dies("Large", "m")
	}
	f.advance(time.Minute)
	f.dies("Late", "m")
	if page := f.get("/dead"); strings.Index(page, ">Late</a>") > strings.Index(page, ">Large</a>") {
		t.Error("the error that began last is not the first")
	}
}

func TestErrorsAfterADeployAreFirstAndNew(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for range 30 {
		f.dies("Old", "m")
	}
	f.advance(2 * time.Hour)
	if _, err := f.service.AddMark(t.Context(), f.caller, service.Mark{Text: "billing 4.2"}); err != nil {
		t.Fatal(err)
	}
	f.advance(time.Minute)
	f.dies("Fresh", "m")
	page := f.get("/dead")
	if strings.Index(page, ">Fresh</a>") > strings.Index(page, ">Old</a>") {
		t.Error("the error that began last is not the first")
	}
	largest := f.get("/dead?classes=largest")
	if strings.Index(largest, ">Old</a>") > strings.Index(largest, ">Fresh</a>") {
		t.Error("the largest error is not the first")
	}
	f.wants(f.errorRow(page, "Fresh"), ">new</span>", "after billing 4.2")
	if strings.Contains(f.errorRow(page, "Old"), ">new</span>") {
		t.Error("an error from before the deploy is new")
	}
	f.wants(page, "31 in 24 hours", "New since", `&#34;text&#34;:&#34;billing 4.2&#34;`)
}

// The page counts the deaths of a span exactly: those of its whole hours, and the list those of the span.
func TestErrorsOfASpanAreCounted(t *testing.T) {
	t.Parallel()
	f := setup(t)
	start := f.clock.Now().Time().UTC().Truncate(time.Hour)
	for hour := range 5 {
		for range hour + 1 {
			f.dies("E", "m")
		}
		f.advance(time.Hour)
	}
	at := func(hours int) string { return formTime(start.Add(time.Duration(hours) * time.Hour)) }
	page := f.get(fmt.Sprintf("/dead?died_from=%s&died_to=%s", at(1), at(4)))
	f.wants(page, "9 in 3 hours", `<td class="num" data-label="Jobs">9</td>`)
	page = f.get(fmt.Sprintf("/dead?died_from=%s&died_to=%s", strings.Replace(at(1), ":00:00", ":30:00", 1), at(4)))
	f.wants(page, "9 in 3 hours, counted by whole hours")
}

func TestErrorsAreSplitByTheVersionOfTheWorker(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, version := range []string{"4.1", "4.2", "4.2"} {
		f.diesOf(version, "E", "m")
	}
	page := f.get("/dead")
	f.wants(f.errorRow(page, "E"), "4.2 <b>2</b>", "4.1 <b>1</b>", "worker_version=4.2")
	f.wants(f.get("/dead?failure_group=E&type=mail&worker_version=4.1"), "1 in 24 hours")
	list, err := f.service.Jobs(t.Context(), f.caller, service.JobFilter{Version: "4.1"}, service.JobPage{Limit: 1})
	if err != nil || len(list.Jobs) != 1 {
		t.Fatal(list.Jobs, err)
	}
	f.wants(f.get("/jobs/"+list.Jobs[0].ID), `title="version of the worker">4.1</a>`)
}
