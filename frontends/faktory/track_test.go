package faktory

import (
	"fmt"
	"testing"

	"broker/core"
)

// TRACK SET sets a description of the worker's progress. Each new description becomes a line of the job's log.
func TestDescriptionsOfTrackSetAreLinesOfTheLog(t *testing.T) {
	t.Parallel()
	s := setup(t)
	w := dial(s, "worker", "w1")
	send := func(line string) {
		t.Helper()
		w.Send(line + "\r\n")
		w.Want("+OK\r\n")
	}
	set := func(members string) { send(`TRACK SET {"jid":"track-01"` + members + "}") }
	send(`PUSH {"jid":"track-01","jobtype":"x","args":[]}`)
	set(`,"desc":"before it runs"`)
	w.Send("FETCH default\r\n")
	object(t, w)
	for _, members := range []string{
		`,"desc":"one"`, `,"percent":10`, `,"percent":20,"desc":"one"`, `,"desc":"two"`, `,"desc":""`, `,"desc":"one"`,
	} {
		set(members)
	}
	other := newOtherClient(s, core.HTTP)
	seq := other.do(&core.Inspect{Ref: core.Ref{ID: "track-01"}, Brief: true})[0].Info.Seq
	chunks, err := core.DecodeLog(other.do(&core.ReadDocuments{Prefix: core.LogPrefix(seq)})[0].Documents)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, l := range core.LogLines(chunks, 0) {
		lines = append(lines, l.Text)
	}
	if fmt.Sprint(lines) != "[one two one]" {
		t.Errorf("lines %q", lines)
	}
}
