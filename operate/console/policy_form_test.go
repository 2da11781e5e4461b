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
				"backoff": {"exponential"}, "waits": {"2"}, "backoff_max": {"600"}, "jitter": {"0.5"},
				"on_exhausted": {"move"},
				"move_to":      {"q2"},
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
	limits := f.get("/limits")
	for _, field := range viewPolicy(nil).Fields {
		f.wants(page, `name="`+field.Name+`"`, "<label>"+field.Label+"\n")
	}
	for i := range schema.ThrottleRows {
		row := &schema.ThrottleRows[i]
		f.wants(page, `name="`+row.Base()+`"`, "<label>"+row.Label+"\n")
		f.wants(limits, `name="`+row.Base()+`"`, "<label>"+row.Label+"\n")
	}
}

func TestFormOfALimitSetsEachSetting(t *testing.T) {
	t.Parallel()
	form := url.Values{}
	for i := range schema.ThrottleRows {
		form.Set(schema.ThrottleRows[i].Base(), "3")
	}
	q, change := &service.Queue{}, service.QueueChange{}
	if err := limitChange(form, q, &change); err != nil {
		t.Fatal(err)
	}
	set := change.Throttle.Over(core.Throttle{})
	if want := (core.Throttle{Leased: 3, LeasedPerWorker: 3, SlotFor: 3e9, Rate: 3, Burst: 3}); set != want {
		t.Errorf("the form sets %+v", set)
	}
	q.Throttle = new(schema.ThrottleOf(&set))
	for _, f := range limitsOfQueue(q) {
		if want := map[string]string{"high": "", "normal": "", "low": "", "slot_for": "3s"}; f.Value != "3" &&
			f.Value != want[f.Name] {
			t.Errorf("the form shows %q as %s", f.Value, f.Name)
		}
	}
	change = service.QueueChange{}
	if err := limitChange(form, q, &change); err != nil || change.Throttle != nil {
		t.Errorf("the same values change %+v, %v", change.Throttle, err)
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
