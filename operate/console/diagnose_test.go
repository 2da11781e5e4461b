package console

import (
	"testing"

	"broker/operate/service"
)

func TestStateOfAQueueIsOneSentence(t *testing.T) {
	t.Parallel()
	paused := &service.Wait{Reason: "paused", Text: "The queue is paused."}
	noWorker := &service.Wait{Reason: "worker", Text: "No worker asks for jobs of this queue."}
	limit := &service.Wait{Reason: "limit", Text: "At most 2 jobs may run."}
	jobs := &service.Wait{Reason: "jobs", Text: "The next job, seq:9, comes after 1 job: seq:7."}
	for _, one := range []struct {
		queue service.Queue
		want  string
	}{
		{service.Queue{}, "Nothing waits."},
		{service.Queue{Dead: 2}, "Nothing waits; 2 jobs are dead."},
		{service.Queue{Leased: 1}, "Nothing waits; 1 job is running."},
		{service.Queue{Ready: 1, Wait: noWorker}, "1 job waits. No worker asks for jobs of this queue."},
		{
			service.Queue{Ready: 3, OldestS: 90, Wait: paused},
			"3 jobs wait, the oldest for 1 min 30 s. The queue is paused.",
		},
		{
			service.Queue{Ready: 3, Leased: 2, Workers: 4, Measured: true},
			"3 jobs wait. 2 jobs are running, and none has ended in the last minute.",
		},
		{service.Queue{Ready: 3, Workers: 4}, "3 jobs wait."},
		{service.Queue{Ready: 3, Workers: 4, Wait: limit}, "3 jobs wait. At most 2 jobs may run."},
		{service.Queue{Blocked: 2, Wait: jobs}, "2 jobs wait for other jobs. The next job, seq:9, comes after 1 job: seq:7."},
		{
			service.Queue{Ready: 9, Workers: 1, InRate: 1.8, OutRate: 1.4, Measured: true},
			"9 jobs wait. 1 worker finishes 1.40/s, 1.80/s come in: the queue grows by 0.40/s.",
		},
		{
			service.Queue{Ready: 100, Workers: 2, InRate: 1, OutRate: 2, Measured: true},
			"100 jobs wait. 2 workers finish 2.00/s, 1.00/s come in: the queue is empty in about 1 min 40 s.",
		},
		{
			service.Queue{Ready: 9, Workers: 2, InRate: 2, OutRate: 2, Measured: true},
			"9 jobs wait. 2 workers finish 2.00/s, 2.00/s come in: the queue keeps its length.",
		},
	} {
		if got := diagnose(&one.queue); got != one.want {
			t.Errorf("%+v:\n got %s\nwant %s", one.queue, got, one.want)
		}
	}
}
