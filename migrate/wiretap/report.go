package wiretap

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Report is the result of a comparison. Requests is the sum of the other four counts.
type Report struct {
	Protocol  string            `json:"protocol"`
	Server    string            `json:"server"`
	Since     time.Time         `json:"since"`
	Until     time.Time         `json:"until"`
	Requests  uint64            `json:"requests"`
	Equal     uint64            `json:"equal"`
	Different uint64            `json:"different"`
	Unknown   uint64            `json:"unknown"`
	NoReply   uint64            `json:"no_reply"`          // requests that never have a reply
	Pushes    uint64            `json:"pushes"`            // equal unsolicited messages of both servers; unequal ones are differences
	Dropped   string            `json:"dropped,omitempty"` // why the comparison has ended
	Jobs      Jobs              `json:"jobs"`
	Gaps      []Gap             `json:"gaps"`    // the first moments at which the comparison started anew
	Reasons   map[string]uint64 `json:"reasons"` // why requests are unknown
	Verbs     []Verb            `json:"verbs"`
	Found     []Difference      `json:"differences"` // the first differences
}

// Verb is a kind of request.
type Verb struct {
	Verb      string `json:"verb"`
	Requests  uint64 `json:"requests"`
	Equal     uint64 `json:"equal"`
	Different uint64 `json:"different"`
	Unknown   uint64 `json:"unknown"`
}

// Difference is a request with two replies that differ.
type Difference struct {
	At         time.Time `json:"at"`
	Connection int       `json:"connection"`
	Verb       string    `json:"verb"`
	Request    string    `json:"request"`
	Server     string    `json:"server"`
	Broker     string    `json:"broker"`
}

// maxFound is the maximum number of differences kept.
const maxFound = 100

// noReply represents a missing reply.
const noReply = "(no reply)"

// tally counts the results.
type tally struct {
	Report
	verbs        map[string]*Verb
	onDifference func(Difference) // may be nil
	onGap        func(Gap)        // may be nil
	reversed     bool             // the first server is the broker
}

func newTally(protocol, server string) tally {
	return tally{
		Report: Report{Protocol: protocol, Server: server, Since: time.Now(), Reasons: make(map[string]uint64)},
		verbs:  make(map[string]*Verb),
	}
}

func (t *tally) verb(name string) *Verb {
	v := t.verbs[name]
	if v == nil {
		if len(t.verbs) >= maxVerbs {
			name = "others"
		}
		if v = t.verbs[name]; v == nil {
			v = &Verb{Verb: name}
			t.verbs[name] = v
		}
	}
	return v
}

// maxVerbs limits the table, because clients choose the words.
const maxVerbs = 100

func (t *tally) equal(verb string) {
	v := t.verb(verb)
	t.Requests, t.Equal = t.Requests+1, t.Equal+1
	v.Requests, v.Equal = v.Requests+1, v.Equal+1
}

func (t *tally) unanswered(verb string) {
	t.Requests, t.NoReply = t.Requests+1, t.NoReply+1
	t.verb(verb).Requests++
}

func (t *tally) unknown(verb, why string) {
	v := t.verb(verb)
	t.Requests, t.Unknown = t.Requests+1, t.Unknown+1
	v.Requests, v.Unknown = v.Requests+1, v.Unknown+1
	t.Reasons[why]++
}

func (t *tally) different(d Difference) {
	v := t.verb(d.Verb)
	t.Requests, t.Different = t.Requests+1, t.Different+1
	v.Requests, v.Different = v.Requests+1, v.Different+1
	t.found(d)
}

func (t *tally) gap(g Gap) {
	if len(t.Gaps) < maxFound {
		t.Gaps = append(t.Gaps, g)
	}
	if t.onGap != nil {
		t.onGap(g)
	}
}

func (t *tally) found(d Difference) {
	if t.reversed {
		d.Server, d.Broker = d.Broker, d.Server
	}
	if len(t.Found) < maxFound {
		d.At = time.Now()
		t.Found = append(t.Found, d)
		if t.onDifference != nil {
			t.onDifference(d)
		}
	}
}

func (t *tally) report() Report {
	r := t.Report
	r.Until, r.Reasons = time.Now(), make(map[string]uint64, len(t.Reasons))
	for why, n := range t.Reasons {
		r.Reasons[why] = n
	}
	r.Verbs, r.Found, r.Gaps = []Verb{}, append([]Difference{}, t.Found...), append([]Gap{}, t.Gaps...)
	r.Jobs.FromServer = append([]string{}, t.Jobs.FromServer...)
	r.Jobs.FromBroker = append([]string{}, t.Jobs.FromBroker...)
	for _, v := range t.verbs {
		r.Verbs = append(r.Verbs, *v)
	}
	slices.SortFunc(r.Verbs, func(a, b Verb) int { return strings.Compare(a.Verb, b.Verb) })
	return r
}

// Summary is a line for a terminal.
func (r *Report) Summary() string {
	s := fmt.Sprintf("requests %d, equal %d, different %d, unknown %d, without reply %d", r.Requests, r.Equal,
		r.Different, r.Unknown, r.NoReply)
	if r.Dropped != "" {
		s += "; comparison dropped: " + r.Dropped
	}
	return s
}

// Verdict is a line about the jobs: what each server delivered that the other did not.
func (r *Report) Verdict() string {
	j := &r.Jobs
	s := fmt.Sprintf("jobs: accepted %d, delivered by both %d, only by the server %d, only by the broker %d", j.Accepted,
		j.Delivered, j.OnlyServer, j.OnlyBroker)
	for _, only := range []struct {
		who string
		ids []string
	}{{"server", j.FromServer}, {"broker", j.FromBroker}} {
		if len(only.ids) > 0 {
			shown := only.ids[:min(len(only.ids), maxNamed)]
			s += fmt.Sprintf("; only the %s delivered %s", only.who, quoted([]byte(strings.Join(shown, " "))))
		}
	}
	return s
}

// maxNamed is the number of jobs that Verdict names for each server.
const maxNamed = 10

// String describes a difference on four lines.
func (d *Difference) String() string {
	return fmt.Sprintf("different: %s on connection %d\n  request %s\n  server  %s\n  broker  %s", d.Verb, d.Connection,
		d.Request, d.Server, d.Broker)
}

// quoted shows bytes on one line of limited length.
func quoted(b []byte) string {
	const most = 400
	if len(b) > most {
		return fmt.Sprintf("%q… (%d bytes)", b[:most], len(b))
	}
	return fmt.Sprintf("%q", b)
}
