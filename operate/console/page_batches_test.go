package console

import (
	"testing"
	"time"

	"broker/operate/service"
)

// TestABatchEstimatesWhenItEnds compares the estimate with batches whose pace the test knows.
func TestABatchEstimatesWhenItEnds(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		batch service.Batch
		after time.Duration
		want  string
	}{
		{service.Batch{CreatedAt: &began, Total: 10, Pending: 10}, time.Hour, ""},
		{service.Batch{CreatedAt: &began, Total: 10, Done: 10}, time.Hour, ""},
		{service.Batch{CreatedAt: &began, Total: 10, Done: 4, Pending: 6}, 8 * time.Minute, "12 min 00 s"},
		{service.Batch{CreatedAt: &began, Total: 4000, Done: 3999, Pending: 1}, 3999 * time.Second, "1 s"},
		{service.Batch{CreatedAt: &began, Total: 10, Done: 4, Pending: 6, Lost: 1}, time.Hour, ""},
	} {
		if got := timeLeft(&c.batch, began.Add(c.after)); got != c.want {
			t.Errorf("%d of %d after %s: %q left, want %q", c.batch.Done, c.batch.Total, c.after, got, c.want)
		}
	}
}
