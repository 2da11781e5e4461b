package limit

import (
	"reflect"
	"testing"
	"time"

	"broker/core"
)

// TestStoredLimitsAreReadAsTheyWereWritten decodes bytes as stores of released brokers have them, and expects that the
// same limits are written as the same bytes.
func TestStoredLimitsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	ofType := core.Throttle{Rate: 0.5, Burst: 3}
	for _, c := range []struct {
		name, value string
		want        Stored
	}{
		{
			RulesPrefix + "mail",
			`{"limits":[{"leased":2,"slot_for":1000000000},{"scope":1,"name":"Q2FsbP8=","rate":0.5,"burst":3},` +
				`{"scope":2,"per_worker":1}],"key":1,"tag":"shop","fair":true,"weights":{"a":2}}`,
			Stored{
				Queue: "mail",
				Limits: []core.Limit{
					{
						Selector: core.InQueue("mail", core.ScopeQueue, ""),
						Throttle: core.Throttle{Leased: 2, SlotFor: time.Second},
					},
					{Selector: core.InQueue("mail", core.ScopeType, "Call\xff"), Throttle: ofType},
					{Selector: core.InQueue("mail", core.ScopeKey, ""), Throttle: core.Throttle{LeasedPerWorker: 1}},
				},
				Sharing: core.Sharing{
					Queue: "mail", Key: core.JobKey{Kind: core.KeyTag, Tag: "shop"}, Fair: true,
					Weights: map[string]uint32{"a": 2},
				},
			},
		},
		{
			SharedPrefix + "api", `{"queues":["bWFpbA==","c3luYw=="],"types":["Q2FsbA=="],"leased":3,"rate":0.5,"burst":3}`,
			Stored{Limits: []core.Limit{{
				Name: "api", Selector: core.Selector{Queues: []string{"mail", "sync"}, Types: []string{"Call"}},
				Throttle: core.Throttle{Leased: 3, Rate: 0.5, Burst: 3},
			}}},
		},
	} {
		got, err := Decode(c.name, []byte(c.value))
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Fatalf("%s is read as %+v, %v; want %+v", c.name, got, err, c.want)
		}
		f := setup(t)
		for i := range got.Limits {
			if _, err := f.rules.Put(&got.Limits[i]); err != nil {
				t.Fatal(err)
			}
		}
		if got.Sharing.Queue != "" {
			if _, err := f.rules.Share(&got.Sharing); err != nil {
				t.Fatal(err)
			}
		}
		if again := string(f.table.Meta()[c.name]); again != c.value {
			t.Errorf("%s is written as\n%s, want\n%s", c.name, again, c.value)
		}
	}
}
