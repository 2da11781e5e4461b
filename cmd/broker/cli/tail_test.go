package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
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

// A broker that starts again, and a cluster between two leaders, have not refused the stream.
func TestTailGoesOnOnceTheBrokerServesAgain(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 2 {
			rw.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(rw, `{"title":"Service Unavailable","code":"starting","detail":"starting"}`)
			return
		}
		_, _ = io.WriteString(rw, "data: {\"kind\":\"paused\",\"queue\":\"mail\"}\n\n")
	}))
	defer server.Close()
	cmd := tailCommand()
	cmd.SetArgs([]string{"--server", server.URL, "-n", "2"})
	var out, log bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&log)
	if err := cmd.Execute(); err != nil || asked != 3 || strings.Count(out.String(), "paused") != 2 {
		t.Errorf("%v, asked %d times\n%s%s", err, asked, out.String(), log.String())
	}
}
