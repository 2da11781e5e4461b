// Package httpanswer reads answers of the HTTP API for the tests that compare the protocols, with a broker in memory and over
// sockets. It imports nothing of the broker.
package httpanswer

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Answer is an answer of the HTTP API: a job, a lease or a problem.
type Answer struct {
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

// Read reads an answer with a status; the body may be empty.
func Read(status int, body []byte) (a Answer, err error) {
	if len(body) > 0 {
		err = json.Unmarshal(body, &a)
	}
	a.Status = status
	return a, err
}

// String is the answer in the words of the tables that docs/sharing.md shows.
func (a Answer) String() string {
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
