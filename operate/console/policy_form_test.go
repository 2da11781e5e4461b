package console

import (
	"encoding/json"
	"errors"
	"net/url"
	"testing"

	"broker/core"
	"broker/core/schema"
	"broker/operate/service"
)

func TestFormOfAPolicyReplacesThePolicy(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		form url.Values
		want string
	}{
		{url.Values{}, `{}`},
		{url.Values{"durability": {"none"}}, `{"durability":"none"}`},
		{
			url.Values{"max_fails": {" 5 "}, "lease_for": {"1.5"}, "retain_for": {"1m"}},
			`{"max_fails":5,"lease_for_s":1.5,"retain_for_s":60}`,
		},
		{
			url.Values{"max_attempts": {"3"}, "backoff": {"list"}, "waits": {"10, 60.5,10m"}, "on_exhausted": {"dead"}},
			`{"max_attempts":3,"backoff":[10,60.5,600],"on_exhausted":"dead"}`,
		},
		{
			url.Values{
				"backoff": {"exponential"}, "waits": {"2"}, "backoff_max": {"600"}, "jitter": {"0.5"}, "on_exhausted": {"move"},
				"move_to": {"q2"},
			},
			`{"backoff":{"kind":"exponential","base_s":2,"max_s":600,"jitter":0.5},"on_exhausted":{"move":"q2"}}`,
		},
	} {
		body, err := policyForm(row.form)
		if err != nil {
			t.Fatal(err)
		}
		set, remove, err := schema.ParsePolicy("policy", body)
		if err != nil {
			t.Fatal(err)
		}
		if set.Has|remove != core.AllPolicyFields {
			t.Errorf("%v leaves members as they are: %s", row.form, body)
		}
		shown := schema.ShowPolicy(&core.PolicyInfo{JobPolicy: set})
		if got, err := json.Marshal(shown); err != nil || string(got) != row.want {
			t.Errorf("%v: %s, want %s", row.form, got, row.want)
		}
		again, err := policyForm(viewPolicy(shown).values())
		if err != nil || string(again) != string(body) {
			t.Errorf("the form shows %+v, which sets %s, was %s, %v", viewPolicy(shown), again, body, err)
		}
	}
	for field, form := range map[string]url.Values{
		"max_fails": {"max_fails": {"-1"}}, "expires_in": {"expires_in": {"an hour"}},
		"waits": {"backoff": {"list"}, "waits": {"10,x"}}, "jitter": {"backoff": {"linear"}, "jitter": {"much"}},
	} {
		var refused *service.Error
		if _, err := policyForm(form); !errors.As(err, &refused) || refused.Field != field {
			t.Errorf("a wrong %s: %v", field, err)
		}
	}
	if v := viewPolicy(nil); v.Any || v.Facts != nil || v.values().Get("max_fails") != "" {
		t.Errorf("without a policy: %+v", v)
	}
}

// TestFormHasTheFieldsOfTheSchema compares the fields on the page with the settings.
func TestFormHasTheFieldsOfTheSchema(t *testing.T) {
	t.Parallel()
	f := setup(t)
	if _, err := f.service.Submit(t.Context(), f.caller, []service.Submission{{Queue: "mail"}},
		service.SubmitOptions{}); err != nil {
		t.Fatal(err)
	}
	page := f.get("/queues/mail")
	for _, field := range viewPolicy(nil).Fields {
		f.wants(page, `name="`+field.Name+`"`)
		f.wants(page, "<label>"+field.Label+"\n")
	}
}

// values is what a browser sends for a form.
func (v policyView) values() url.Values {
	form := url.Values{}
	for _, f := range v.Fields {
		form.Set(f.Name, f.Value)
	}
	return form
}
