package console

import (
	"net/url"
	"testing"

	"broker/operate/service"
)

// TestFormsOfQueuesKeepWhatWasTyped sends each form with one mistake. The page says what is wrong, and the form has all that was typed.
func TestFormsOfQueuesKeepWhatWasTyped(t *testing.T) {
	t.Parallel()
	f := setup(t)
	if _, err := f.service.Submit(t.Context(), f.caller, []service.Submission{{Queue: "mail"}}, service.SubmitOptions{}); err != nil {
		t.Fatal(err)
	}
	limit := url.Values{"do": {"limit"}, "concurrency": {"7"}, "rate": {"fast"}, "id": {"mail"}}
	share := url.Values{"do": {"share"}, "key": {"tag"}, "tag": {"tenant"}, "mode": {"ordered"}, "weights": {"acme"}, "id": {"mail"}}
	policy := url.Values{"do": {"policy"}, "max_fails": {"9"}, "lease_for": {"long"}}
	remove := url.Values{"do": {"remove"}, "confirm": {"male"}}
	for _, c := range []struct {
		path  string
		form  url.Values
		wants []string
	}{
		{"/queues/mail", limit, []string{"is not a number of leases a second", `name="concurrency" value="7"`, `name="rate" value="fast"`}},
		{"/queues", limit, []string{"is not a number of leases a second", `name="concurrency" value="7"`, `value="fast"`, `id="limits" open`, `value="mail" checked`}},
		{"/queues/mail", share, []string{"such as acme = 3", `value="tenant"`, ">acme</textarea>", `id="sharing" open`}},
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
