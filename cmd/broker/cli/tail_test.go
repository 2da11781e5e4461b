package cli

import (
	"strings"
	"testing"
	"time"
)

func TestTailShowsEventsOnOneLine(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 1, 5e6, time.UTC)
	now, clock := at.Format(time.RFC3339Nano), at.Local().Format("15:04:05.000")
	for _, c := range []struct{ data, want string }{
		{
			`{"id":"r-1","at":"` + now + `","kind":"failed","queue":"mail","type":"send","job":"a","seq":7,` +
				`"protocol":"workq","worker":"w1","detail":"two\nlines","over":true}`,
			clock + "  failed         mail/send                 a  w1  two·lines",
		},
		{`{"at":"` + now + `","kind":"paused","queue":"mail"}`, clock + "  paused         mail                      -"},
		{`{"dropped":1,"restarted":false}`, "(1 event dropped: they came faster than they were read)"},
		{`{"dropped":0,"restarted":true}`, "(the broker no longer has the events of the meantime)"},
	} {
		var out strings.Builder
		if err := printEvent(&out, []byte(c.data), formatTable); err != nil || out.String() != c.want+"\n" {
			t.Errorf("%s: error %v\n%q, want\n%q", c.data, err, out.String(), c.want)
		}
	}
}
