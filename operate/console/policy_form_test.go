package console

import (
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"testing"

	"broker/core"
	"broker/core/policytext"
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
			url.Values{"max_fails": {" 5 "}, "lease_for": {"1.5"}, "retain_for": {"60"}},
			`{"max_fails":5,"lease_for_s":1.5,"retain_for_s":60}`,
		},
		{
			url.Values{"max_attempts": {"3"}, "backoff": {"list"}, "waits": {"10, 60.5,600"}, "end": {"dead"}},
			`{"max_attempts":3,"backoff":[10,60.5,600],"on_exhausted":"dead"}`,
		},
		{
			url.Values{
				"backoff": {"exponential"}, "waits": {"2"}, "backoff_max": {"600"}, "jitter": {"0.5"}, "end": {"move"},
				"move_to": {"q2"},
			},
			`{"backoff":{"kind":"exponential","base_s":2,"max_s":600,"jitter":0.5},"on_exhausted":{"move":"q2"}}`,
		},
	} {
		body, err := policyForm(row.form)
		if err != nil {
			t.Fatal(err)
		}
		set, remove, err := policytext.Parse("policy", body)
		if err != nil {
			t.Fatal(err)
		}
		if set.Has|remove != core.AllPolicyFields {
			t.Errorf("%v leaves members as they are: %s", row.form, body)
		}
		shown := policytext.Show(&core.PolicyInfo{JobPolicy: set})
		if got, err := json.Marshal(shown); err != nil || string(got) != row.want {
			t.Errorf("%v: %s, want %s", row.form, got, row.want)
		}
		again, err := policyForm(viewPolicy(shown).values())
		if err != nil || string(again) != string(body) {
			t.Errorf("the form shows %+v, which sets %s, was %s, %v", viewPolicy(shown), again, body, err)
		}
	}
	for field, form := range map[string]url.Values{
		"max_fails": {"max_fails": {"-1"}}, "expires_in": {"expires_in": {"1h"}},
		"waits": {"backoff": {"list"}, "waits": {"10,x"}}, "jitter": {"backoff": {"linear"}, "jitter": {"much"}},
	} {
		var refused *service.Error
		if _, err := policyForm(form); !errors.As(err, &refused) || refused.Field != field {
			t.Errorf("a wrong %s: %v", field, err)
		}
	}
	if v := viewPolicy(nil); !reflect.DeepEqual(v, policyView{}) {
		t.Errorf("without a policy: %+v", v)
	}
}

// values is what a browser sends for a form.
func (v policyView) values() url.Values {
	return url.Values{
		"max_fails": {v.MaxFails}, "max_attempts": {v.MaxAttempts}, "lease_for": {v.LeaseFor},
		"expires_in": {v.ExpiresIn}, "retain_for": {v.RetainFor},
		"backoff": {v.Kind}, "waits": {v.Waits}, "backoff_max": {v.Max}, "jitter": {v.Jitter}, "end": {v.End},
		"move_to": {v.MoveTo}, "durability": {v.Durability},
	}
}
