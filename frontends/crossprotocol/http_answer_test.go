package crossprotocol

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// httpAnswer is an answer of the HTTP API: a job, a lease or a problem.
type httpAnswer struct {
	Status int `json:"-"`

	ID, State string
	Outcome   *struct {
		Success       bool
		Cause, Result string
	}

	Lease string
	Job   struct {
		ID, Body string
		Args     json.RawMessage
	}

	Code string
}

// readAnswer reads an answer with a status; the body may be empty.
func readAnswer(status int, body []byte) (a httpAnswer, err error) {
	if len(body) > 0 {
		err = json.Unmarshal(body, &a)
	}
	a.Status = status
	return a, err
}

// String is the text of the answer in the tables of docs/sharing.md.
func (a httpAnswer) String() string {
	switch o := a.Outcome; {
	case a.Status >= http.StatusBadRequest:
		return fmt.Sprintf("`%d %s`", a.Status, a.Code)
	case a.State == "":
		return fmt.Sprintf("`%d`", a.Status)
	case o == nil:
		return a.State
	case o.Success:
		return fmt.Sprintf("%s, result `%s`", a.State, o.Result)
	case o.Cause != "finished":
		return a.State + ", " + o.Cause
	}
	return a.State + ", failed"
}
