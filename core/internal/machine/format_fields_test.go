package machine_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/record/recordtest"
)

// A submission with any one field of a job is refused in each format that cannot carry the field, with an error that
// names the formats, or an entry of that format carries it. The fields are those of the Go type, so that a new one is
// tested too.
func TestEveryFieldOfASubmissionIsCarriedOrRefused(t *testing.T) {
	t.Parallel()
	full := reflect.ValueOf(recordtest.FullJob()).Elem()
	refused := map[string]int{}
	for i := range full.NumField() {
		name := full.Type().Field(i).Name
		submit := func(format int) (core.Reply, bool) {
			p, do := inFormat(&format)
			p.store.check = func(b *record.CommitBatch) error { return encodable(b, format) }
			j := &core.Job{Queue: "q"}
			reflect.ValueOf(j).Elem().Field(i).Set(full.Field(i))
			r := do(&core.Submit{Job: j})
			return r, commits(t, p)
		}
		if r, _ := submit(record.NewestFormat); r.Kind == core.Failed {
			continue // such a submission is refused for another reason, such as a batch that does not exist
		}
		for format := 1; format < record.NewestFormat; format++ {
			r, carried := submit(format)
			says := strings.Contains(fmt.Sprint(r.Err), fmt.Sprintf("now %d)", format))
			switch {
			case r.Kind == core.Failed && (!errors.Is(r.Err, core.ErrInvalid) || !says):
				t.Errorf("%s in format %d: %+v", name, format, r)
			case r.Kind == core.Failed:
				refused[name]++
			case !carried:
				t.Errorf("%s is accepted in format %d, which cannot carry it", name, format)
			}
		}
	}
	if refused["Cost"] != 3 || refused["OnBroken"] != 3 || refused["Queue"] != 0 {
		t.Errorf("refused, by number of formats: %v", refused)
	}
}
