package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"broker/operate/service"
)

// maxCompletions limits the names that a search field offers.
const maxCompletions = 12

// completePage answers with what may follow in a field for searches, as JSON. The field that leads to a queue also
// offers bare names. It also previews forms: the next runs of a cron expression, what a limit would do, or what is
// wrong with a filter, a policy, the turns of keys or a job.
func completePage(r *request) (*view, error) {
	var lines []string
	var err error
	switch r.query.Get("preview") {
	case "runs":
		lines = r.nextRuns(r.query.Get("cron"), r.query.Get("zone"))
	case "limit":
		lines, err = r.limitPreview(r.query)
	case "filter":
		lines = r.filterProblems()
	case "policy":
		_, err = policyForm(r.query)
		lines, err = refusal(err)
	case "share":
		lines, err = refusal(checkSharing(r.query))
	case "job":
		_, err = r.updateOf(r.query, nil, false)
		lines, err = refusal(err)
	case "submit":
		lines, err = refusal(r.checkSubmission())
	default:
		lines, err = r.completions(r.query.Get("q"), r.query.Has("jump"))
	}
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(lines)
	if err != nil {
		return nil, err
	}
	h := r.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	_, _ = r.w.Write(body) // the client may have gone
	return nil, nil
}

// checkSharing returns the error for the turns of keys in a form.
func checkSharing(form url.Values) error {
	sharing, err := sharingForm(form)
	if err != nil {
		return err
	}
	change := service.QueueChange{Sharing: sharing}
	return change.Check("queue") // the name is not part of the form
}

// checkSubmission returns the error for the job in a form, whose queue may not be typed yet.
func (r *request) checkSubmission() error {
	sub, err := r.submission(r.query)
	if err != nil {
		return err
	}
	sub.Queue = cmp.Or(sub.Queue, "queue")
	return r.service.CheckSubmission(r.Context(), r.caller, &sub)
}

// refusal is what a form says about a refused value; other errors stay errors.
func refusal(err error) ([]string, error) {
	var refused *service.Error
	if errors.As(err, &refused) && service.IsCode(err, service.CodeInvalid) {
		return []string{refused.Detail}, nil
	}
	return nil, err
}

// filterProblems says what is wrong with the filter in a form.
func (r *request) filterProblems() (lines []string) {
	r.query.Del("preview")
	searched, problems := r.searched()
	if searched == nil {
		searched = r.query
		searched.Del("q")
	}
	_, wrong := jobFilter(searched, nil, r.console.options.Now())
	problems = append(problems, wrong...)
	var refused *service.Error
	if _, err := service.ParseStates(givenStates(searched)); errors.As(err, &refused) {
		problems = append(problems, problemOf(refused))
	}
	for _, p := range problems {
		lines = append(lines, p.Label+": "+p.Text)
	}
	return lines
}

// completions returns the search with its last word completed: words of conditions, short lists of values, and names of
// queues.
func (r *request) completions(search string, jump bool) ([]string, error) {
	lines := []string{}
	if strings.Count(search, `"`)%2 == 1 {
		return lines, nil // a value in quotes is not complete
	}
	at := strings.LastIndexByte(search, ' ') + 1
	head, last := search[:at], search[at:]
	word, value, isCondition := strings.Cut(last, ":")
	if !isCondition {
		for _, w := range service.SearchWords() {
			if strings.HasPrefix(w, word) {
				lines = append(lines, head+w+":")
			}
		}
		if !jump || search == "" || head != "" {
			return lines, nil
		}
		names, err := r.queueNames(search)
		return append(lines, names...), err
	}
	var values []string
	switch field := service.FieldOfWord(word); {
	case field == nil:
	case field.Name == "queue":
		names, err := r.queueNames(value)
		if err != nil {
			return nil, err
		}
		values = names
	default:
		for _, choice := range field.Choices {
			if strings.HasPrefix(choice, value) {
				values = append(values, choice)
			}
		}
	}
	for _, v := range values {
		if strings.ContainsAny(v, " \t") {
			v = `"` + v + `"`
		}
		lines = append(lines, head+word+":"+v)
	}
	return lines, nil
}

// queueNames are names of queues that contain a text.
func (r *request) queueNames(part string) ([]string, error) {
	queues, _, err := r.service.Queues(r.Context(), r.caller,
		service.QueueFilter{Search: part, Sort: "name", Limit: maxCompletions})
	names := make([]string, len(queues))
	for i := range queues {
		names[i] = queues[i].Name
	}
	return names, err
}
