package console

import (
	"strings"
	"testing"

	"broker/operate/service"
)

func TestTheTraceOfAJobIsALinkWhereItsAddressIsKnown(t *testing.T) {
	t.Parallel()
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	f := setup(t)
	jobs, err := f.service.Submit(t.Context(), f.caller, []service.Submission{
		{Queue: "q", Traceparent: "00-" + trace + "-00f067aa0ba902b7-01"},
	}, service.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := "/jobs/" + jobs[0].ID
	if page := f.get(path); !strings.Contains(page, ">"+trace+"</span>") {
		t.Error("the page does not show the trace")
	}
	f.console.options.TraceURL = "https://tempo.example/trace/{trace}"
	f.wants(f.get(path), `href="https://tempo.example/trace/`+trace+`"`)
}
