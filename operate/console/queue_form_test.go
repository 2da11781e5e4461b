package console

import (
	"errors"
	"maps"
	"net/url"
	"testing"

	"broker/core/schema"
	"broker/operate/service"
)

func TestFormOfSharing(t *testing.T) {
	t.Parallel()
	got, err := sharingForm(url.Values{
		"key": {"tag"}, "tag": {" tenant: "}, "mode": {"fair"}, "weights": {"acme = 3\r\n\r\na=b=2\n"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint32{"acme": 3, "a=b": 2}
	if got.KeyTag != "tenant" || got.KeyUnique || got.Mode != service.SharingFair || !maps.Equal(got.Weights, want) {
		t.Errorf("got %+v", got)
	}
	if text := weightLines(got.Weights); text != "a=b = 2\nacme = 3" {
		t.Errorf("the form shows %q", text)
	}
	if got, err = sharingForm(url.Values{"key": {""}, "mode": {"fair"}, "weights": {"acme = 3"}}); err != nil ||
		got.Mode != "" || got.Weights != nil {
		t.Errorf("without keys: %+v, %v", got, err)
	}
	for field, form := range map[string]url.Values{
		"tag": {"key": {"tag"}, "tag": {" "}}, "weights": {"key": {"unique"}, "weights": {"acme"}},
		"key": {"key": {"colour"}},
	} {
		var refused *service.Error
		if _, err := sharingForm(form); !errors.As(err, &refused) || refused.Field != field {
			t.Errorf("a wrong %s: %v", field, err)
		}
	}
}

func TestFormOfLimitsChangesOnlyItsFields(t *testing.T) {
	t.Parallel()
	q := &service.Queue{Throttle: &schema.Throttle{Concurrency: 4, SlotForS: 9}}
	var change service.QueueChange
	if err := limitChange(url.Values{"per_worker": {"2"}, "high": {""}}, q, &change); err != nil {
		t.Fatal(err)
	}
	if c := change.Throttle; c == nil || c.PerWorker == nil || *c.PerWorker != 2 || change.Max != nil {
		t.Errorf("leases %+v, jobs %+v", change.Throttle, change.Max)
	} else if c.PerWorker = nil; *c != (schema.ThrottleChange{}) {
		t.Errorf("a field that the form does not name is changed: %+v", c)
	}
	change = service.QueueChange{}
	if err := limitChange(url.Values{"normal": {"77"}, "concurrency": {"4"}}, q, &change); err != nil ||
		change.Throttle != nil || change.Max == nil || change.Max.Normal == nil || *change.Max.Normal != 77 {
		t.Errorf("leases %+v, jobs %+v, %v", change.Throttle, change.Max, err)
	}
	for field, value := range map[string]string{"burst": "-1", "low": "5000000000", "rate": "fast"} {
		var refused *service.Error
		if err := limitChange(url.Values{field: {value}}, q, &change); !errors.As(err, &refused) ||
			refused.Field != field {
			t.Errorf("%s %s: %v", field, value, err)
		}
	}
}

func TestUniqueKeysAreReadable(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"order:7": "order:7", "\x01bill": "bill", "\x02uimg-259": "img-259", "\x02fresize\x00img-1": "resize img-1",
		"\x02h\ufffd\x01": "made from the job's content", "": "",
	} {
		if got := keyLabel(key); got != want {
			t.Errorf("%q is shown as %q, want %q", key, got, want)
		}
	}
}
