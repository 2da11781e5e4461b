package console

import (
	"cmp"
	"errors"
	"time"

	"broker/operate/service"
)

// waitReasons has the short texts for the reasons why jobs wait.
var waitReasons = map[string]string{
	"worker": "waits for a worker", "paused": "queue is paused", "draining": "broker is draining", "limit": "limit reached",
	"time": "not due yet", "jobs": "waits for other jobs", "batch": "waits for its batch", "broken": "blocked for good",
	"order": "waits for its turn",
}

// waitsFor returns a short text that explains why a job does not run.
func waitsFor(j service.Job) string { return cmp.Or(waitReasons[j.Reason], j.Reason) }

// whyItWaits returns a sentence that explains why a job does not run; empty if it runs or has ended.
func (r *request) whyItWaits(j *service.Job) (string, error) {
	switch j.Reason {
	case "":
		return "", nil
	case "paused":
		return "Its queue is paused: resume the queue, and it runs.", nil
	case "draining":
		return "The broker is draining: it hands out no job until that ends.", nil
	case "time":
		return dueSentence(j, r.console.options.Now()), nil
	case "jobs":
		return "It is blocked until " + plural(len(j.Waiting), "job") + " that it comes after " + isAre(len(j.Waiting)) + " done:", nil
	case "batch":
		return "It is the callback of a batch and waits for the batch's jobs.", nil
	case "broken":
		return "A job that it comes after is gone without being done, so it would wait for good: run it now, or cancel it.", nil
	case "order":
		return "It is behind " + plural(j.Behind, "earlier job") + " of the key " + j.Key + ", which " + isAre(j.Behind) + " not done yet: the queue hands out the jobs of a key in order.", nil
	case "worker", "limit":
		return r.readySentence(j)
	}
	return j.Reason, nil
}

// times formats a number of times.
func times(n uint32) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return plural(n, "time")
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func dueSentence(j *service.Job, now time.Time) string {
	if j.RunAt == nil {
		return "It is not due yet."
	}
	in := span(max(j.RunAt.Sub(now), 0).Round(time.Second))
	if j.State == "retrying" {
		return "It has failed " + times(j.Fails) + "; the next try is due in " + in + "."
	}
	return "It is due in " + in + ", at " + clockTime(j.RunAt) + " UTC."
}

// readySentence explains why a ready job does not run.
func (r *request) readySentence(j *service.Job) (string, error) {
	q, err := r.service.Queue(r.Context(), r.caller, j.Queue)
	if err != nil {
		return "", ignoreRefusal(err)
	}
	ahead, exact, err := r.jobsAhead(j)
	if err != nil {
		return "", err
	}
	place := "It is the next job of its queue"
	switch {
	case !exact:
		place = "It is ready behind " + num(ahead) + " or more jobs of its queue"
	case ahead > 0:
		place = "It is ready behind " + plural(ahead, "job") + " of its queue"
	}
	switch {
	case j.Reason == "limit" && q.Throttle != nil && q.Throttle.Concurrency > 0:
		return place + ", of which at most " + num(q.Throttle.Concurrency) + " may run at once; " + num(q.Leased) + " " + isAre(q.Leased) + " running.", nil
	case j.Reason == "limit":
		return place + ", and a limit is reached: it runs when a slot is free.", nil
	case q.Leased > 0:
		return place + "; the workers of the queue are busy with " + plural(q.Leased, "job") + ".", nil
	}
	return place + "; no worker is asking for jobs of this queue.", nil
}

// jobsAhead counts the ready jobs of the queue that are handed out before a job.
func (r *request) jobsAhead(j *service.Job) (n int, exact bool, err error) {
	exact = true
	above := j.Priority + 1
	filters := []service.JobFilter{{Queues: []string{j.Queue}, States: []string{"ready"}, MinPriority: &j.Priority, MaxPriority: &j.Priority}}
	if j.CreatedAt != nil {
		filters[0].CreatedTo = *j.CreatedAt
	}
	if above > j.Priority {
		filters = append(filters, service.JobFilter{Queues: []string{j.Queue}, States: []string{"ready"}, MinPriority: &above})
	}
	for _, f := range filters {
		list, err := r.service.Jobs(r.Context(), r.caller, f, service.JobPage{Limit: 1, Count: true})
		if err != nil {
			return 0, false, ignoreRefusal(err)
		}
		n += list.Count
		exact = exact && list.CountExact
	}
	return n, exact, nil
}

// ignoreRefusal drops errors after which the explanation is left out.
func ignoreRefusal(err error) error {
	if e := (*service.Error)(nil); errors.As(err, &e) {
		return nil
	}
	return err
}
