package qless

import "strings"

// track, track|untrack jid
func track(t *tx, in *input) (any, error) {
	command, given := in.get(0)
	if !given {
		return t.listTracked()
	}
	jid := in.need(1, `Track(): Arg "jid" missing`)
	if in.err != nil {
		return nil, in.err
	}
	if !t.m.jobs.has(jid) {
		return nil, fault("Track(): Job does not exist")
	}
	tracked := t.m.tracked.has(jid)
	changed := tracked
	switch strings.ToLower(command) {
	case "track":
		t.publish("track", jid)
		t.add(&t.m.tracked, jid, t.now)
		changed = !tracked
	case "untrack":
		t.publish("untrack", jid)
		t.drop(&t.m.tracked, jid)
	default:
		return nil, fault(`Track(): Unknown action "%s"`, command)
	}
	t.note(trackDocs + jid)
	if changed {
		return "1", nil
	}
	return "0", nil
}

func (t *tx) listTracked() (any, error) {
	var jobs, expired []string
	for _, jid := range t.m.tracked.slice(0, -1, false) {
		if t.m.jobs.has(jid) {
			jobs = append(jobs, jid)
		} else {
			expired = append(expired, jid)
		}
	}
	list, err := t.jobsJSON(jobs)
	if err != nil {
		return nil, err
	}
	return encode(object("jobs", encoded(list), "expired", expired))
}
