package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// call sends a request to the HTTP API.
func (s *Shop) call(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.at.HTTP+"/api/v1/"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	if into == nil || len(answer) == 0 {
		return nil
	}
	return json.Unmarshal(answer, into)
}

// job is a submission over HTTP.
type job map[string]any

// submit submits a job over HTTP and returns its id.
func (s *Shop) submit(j job) (string, error) {
	var made struct{ ID string }
	err := s.call(s.ctx, http.MethodPost, "jobs", j, &made)
	return made.ID, err
}

// submitAll submits many jobs in steps.
func (s *Shop) submitAll(jobs []job) error {
	for len(jobs) > 0 {
		n := min(len(jobs), 500)
		if err := s.call(s.ctx, http.MethodPost, "jobs", map[string]any{"jobs": jobs[:n]}, nil); err != nil {
			return err
		}
		jobs = jobs[n:]
	}
	return nil
}

func (s *Shop) changeQueue(name string, change map[string]any) error {
	return s.call(s.ctx, http.MethodPatch, "queues/"+url.PathEscape(name), change, nil)
}
