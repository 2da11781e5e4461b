package console

import (
	"cmp"
	"errors"
	"strings"

	"broker/operate/service"
)

// waitReasons has the short texts for the reasons why jobs wait.
var waitReasons = map[string]string{
	"worker": "waits for a worker", "paused": "queue is paused", "draining": "broker is draining",
	"limit": "limit reached",
	"time":  "not due yet", "jobs": "waits for other jobs", "batch": "waits for its batch",
	"broken": "blocked for good",
	"order":  "waits for its turn",
}

// waitsFor returns a short text that explains why a job does not run.
func waitsFor(j service.Job) string { return cmp.Or(waitReasons[j.Reason], j.Reason) }

// whyItWaits returns sentences that explain why a job does not run; empty if it runs or has ended.
func (r *request) whyItWaits(j *service.Job) (string, error) {
	switch {
	case j.Wait == nil:
		return "", nil
	case j.State != "ready" || j.Reason == "order":
		return j.Wait.Text, nil
	}
	ahead, exact, err := r.jobsAhead(j)
	switch {
	case err != nil:
		return "", err
	case ahead == 0:
		return j.Wait.Text, nil
	case !exact:
		return "It is ready behind " + num(ahead) + " or more jobs of its queue. " + j.Wait.Text, nil
	}
	return "It is ready behind " + plural(ahead, "job") + " of its queue. " + j.Wait.Text, nil
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

// verb is a verb in the form for n subjects.
func verb(n int, word string) string {
	switch {
	case n != 1:
		return word
	case strings.HasSuffix(word, "sh"):
		return word + "es"
	}
	return word + "s"
}

// jobsAhead counts the ready jobs of the queue that are handed out before a job.
func (r *request) jobsAhead(j *service.Job) (n int, exact bool, err error) {
	exact = true
	above := j.Priority + 1
	filters := []service.JobFilter{{
		Queues: []string{j.Queue}, States: []string{"ready"}, MinPriority: &j.Priority, MaxPriority: &j.Priority,
	}}
	if j.CreatedAt != nil {
		filters[0].CreatedTo = *j.CreatedAt
	}
	if above > j.Priority {
		filters = append(filters,
			service.JobFilter{Queues: []string{j.Queue}, States: []string{"ready"}, MinPriority: &above})
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
