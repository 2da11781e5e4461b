package relay

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Only what the leader has not got, or what changes nothing, can be said to have changed nothing.
func TestChangeWithoutAnAnswerHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	f := setup(t)
	dies := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	})}
	go func() { _ = dies.Serve(f.leader.Tunnel()) }() // ends with the tunnel
	t.Cleanup(func() { _ = dies.Close() })            // nothing is left
	own := http.NotFoundHandler()
	node := f.follower.Handler(Handlers{Own: own, OverLink: own, HomeOf: homeOf})
	ask := func(method string) (status int, code string) {
		answer := httptest.NewRecorder()
		node.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, "http://localhost/jobs", nil))
		var problem struct{ Code string }
		if err := json.Unmarshal(answer.Body.Bytes(), &problem); err != nil {
			t.Error(err)
		}
		return answer.Code, problem.Code
	}
	if status, code := ask("POST"); status != 504 || code != "outcome_unknown" {
		t.Errorf("a change at a leader that dies: %d %s", status, code)
	}
	if status, code := ask("GET"); status != 503 || code != "no_leader" {
		t.Errorf("a question at a leader that dies: %d %s", status, code)
	}
	f.node.lead("b", nil)
	if status, code := ask("POST"); status != 503 || code != "no_leader" {
		t.Errorf("a change without a way to the leader: %d %s", status, code)
	}
}
