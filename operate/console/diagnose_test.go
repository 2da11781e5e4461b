package console

import (
	"testing"
	"time"

	"broker/operate/service"
)

func TestStateOfAQueueIsOneSentence(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 14, 2, 0, 0, time.UTC)
	for _, one := range []struct {
		queue             service.Queue
		draining, limited bool
		want              string
	}{
		{service.Queue{}, false, false, "Nothing waits."},
		{service.Queue{Dead: 2}, false, false, "Nothing waits; 2 jobs are dead."},
		{service.Queue{Leased: 1}, false, false, "Nothing waits; 1 job is running."},
		{service.Queue{Ready: 1}, false, false, "No worker asks for jobs of this queue: 1 job waits."},
		{service.Queue{Ready: 3, OldestS: 90}, true, false, "The broker is draining and hands out no job: 3 jobs wait, the oldest for 1 min 30 s."},
		{service.Queue{Ready: 3, Paused: true}, false, false, "Paused: 3 jobs wait."},
		{service.Queue{Ready: 3, Paused: true, PausedBy: "ann", PausedAt: &at}, false, false, "Paused by ann at 2026-01-31 14:02:00 UTC: 3 jobs wait."},
		{service.Queue{Ready: 3, Paused: true, PausedBy: "anonymous", PausedAt: &at}, false, false, "Paused at 2026-01-31 14:02:00 UTC: 3 jobs wait."},
		{service.Queue{Ready: 3, Leased: 2, Workers: 4, Throttle: &service.Throttle{Concurrency: 2}}, false, false, "At most 2 of its jobs may run at once, and so many do: 3 jobs wait."},
		{service.Queue{Ready: 3, Leased: 2, Workers: 4}, false, false, "3 jobs wait. 2 jobs are running, and none has ended in the last minute."},
		{service.Queue{Ready: 3, Leased: 1, Workers: 4}, false, true, "A limit is reached: 1 job is running, and 3 jobs wait."},
		{service.Queue{Ready: 9, Workers: 1, InRate: 1.8, OutRate: 1.4}, false, false, "9 jobs wait. 1 worker finishes 1.40/s, 1.80/s come in: the queue grows by 0.40/s."},
		{service.Queue{Ready: 100, Workers: 2, InRate: 1, OutRate: 2}, false, false, "100 jobs wait. 2 workers finish 2.00/s, 1.00/s come in: the queue is empty in about 1 min 40 s."},
		{service.Queue{Ready: 9, Workers: 2, InRate: 2, OutRate: 2}, false, false, "9 jobs wait. 2 workers finish 2.00/s, 2.00/s come in: the queue keeps its length."},
	} {
		if got := diagnose(&one.queue, one.draining, one.limited); got != one.want {
			t.Errorf("%+v:\n got %s\nwant %s", one.queue, got, one.want)
		}
	}
}
