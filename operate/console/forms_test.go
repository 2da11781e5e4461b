package console

import (
	"net/url"
	"testing"
	"time"

	"broker/operate/service"
)

// TestRefusedQueueFormsKeepTheirInput sends each form with one mistake. The page says what is wrong, and the form has
// all that was typed.
func TestRefusedQueueFormsKeepTheirInput(t *testing.T) {
	t.Parallel()
	f := setup(t)
	if _, err := f.service.Submit(t.Context(), f.caller, []service.Submission{{Queue: "mail"}},
		service.SubmitOptions{}); err != nil {
		t.Fatal(err)
	}
	limit := url.Values{"do": {"limit"}, "concurrency": {"7"}, "rate": {"fast"}, "id": {"mail"}}
	share := url.Values{
		"do": {"share"}, "key": {"tag"}, "tag": {"tenant"}, "mode": {"ordered"}, "weights": {"acme"}, "id": {"mail"},
	}
	policy := url.Values{"do": {"policy"}, "max_fails": {"9"}, "lease_for": {"long"}}
	remove := url.Values{"do": {"remove"}, "confirm": {"male"}}
	for _, c := range []struct {
		path  string
		form  url.Values
		wants []string
	}{
		{
			"/queues/mail", limit,
			[]string{"rate_per_s must be a number a second", `name="concurrency" value="7"`, `name="rate" value="fast"`},
		},
		{"/queues", limit, []string{
			"rate_per_s must be a number a second", `name="concurrency" value="7"`, `value="fast"`, `id="limits" open`,
			`value="mail" checked`,
		}},
		{
			"/queues/mail", share,
			[]string{"such as acme = 3", `value="tenant"`, ">acme</textarea>", `id="sharing" open`},
		},
		{"/queues", share, []string{"such as acme = 3", `value="tenant"`, ">acme</textarea>", `id="sharing" open`}},
		{"/queues/mail", policy, []string{"long", `name="max_fails" value="9"`, `value="long"`, `id="policy" open`}},
		{"/queues/mail", remove, []string{"nothing was removed", `id="edit" open`}},
	} {
		page := f.post(c.path, c.form)
		for _, want := range c.wants {
			f.wants(page, want)
		}
	}
}

func TestFormOfAJobHasAKeyThatOutlivesIt(t *testing.T) {
	t.Parallel()
	f := setup(t)
	form := url.Values{
		"queue": {"mail"}, "unique_key": {"k"}, "unique_until": {"window"}, "cost": {"3"}, "do": {"submit"},
	}
	page := f.post("/submit", form)
	f.wants(page, "unique_until window needs unique_for_s")
	f.wants(page, `value="window" selected`)
	form.Set("unique_for", "60")
	f.post("/submit", form)
	list, err := f.service.Jobs(t.Context(), f.caller, service.JobFilter{}, service.JobPage{Limit: 10})
	if err != nil || len(list.Jobs) != 1 || list.Jobs[0].Cost != 3 {
		t.Fatalf("jobs %+v, %v", list.Jobs, err)
	}
	if err := f.service.Act(t.Context(), f.caller, list.Jobs[0].ID, service.Action{Action: service.ActionCancel},
		nil); err != nil {
		t.Fatal(err)
	}
	f.wants(f.post("/submit", form), "this unique key is held")
	f.advance(time.Minute)
	f.post("/submit", form)
	if list, err = f.service.Jobs(t.Context(), f.caller, service.JobFilter{}, service.JobPage{Limit: 10}); err != nil ||
		len(list.Jobs) != 1 {
		t.Errorf("after the window: %+v, %v", list.Jobs, err)
	}
}
