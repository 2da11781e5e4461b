package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// faktorySink is this broker's Faktory port.
type faktorySink struct{ conn *respConn }

// push submits jobs. It returns the errors of refused jobs by index. All other jobs are durable.
func (s *faktorySink) push(jobs []*faktoryJob) (refused map[int]string, err error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	bodies := make([]json.RawMessage, len(jobs))
	for i, j := range jobs {
		bodies[i] = j.body
	}
	line, err := compact(bodies)
	if err != nil {
		return nil, err
	}
	s.conn.line("PUSHB", line)
	text, err := s.conn.text()
	var refusal serverError
	switch {
	case errors.As(err, &refusal) && len(jobs) == 1:
		return map[int]string{0: refusal.Error()}, nil
	case errors.As(err, &refusal): // one bad job makes the whole command fail
		return s.pushHalves(jobs)
	case err != nil:
		return nil, atBroker(err)
	}
	var byJID map[string]string
	if err := json.Unmarshal([]byte(text), &byJID); err != nil {
		return nil, atBroker(err)
	}
	refused = make(map[int]string)
	for i, j := range jobs {
		if reason, no := byJID[j.jid]; no {
			refused[i] = reason
		}
	}
	if len(refused) == 0 && len(byJID) > 0 {
		return nil, fmt.Errorf("this broker refused jobs with unknown ids: %s", text)
	}
	return refused, nil
}

func (s *faktorySink) pushHalves(jobs []*faktoryJob) (map[int]string, error) {
	half := len(jobs) / 2
	refused, err := s.push(jobs[:half])
	if err != nil {
		return nil, err
	}
	second, err := s.push(jobs[half:])
	if refused == nil {
		refused = make(map[int]string)
	}
	for i, reason := range second {
		refused[half+i] = reason
	}
	return refused, err
}

// kill moves scheduled and retrying jobs to the dead set.
func (s *faktorySink) kill(jids []string) error {
	for _, set := range []string{"scheduled", "retries"} {
		line, err := compact(map[string]any{"cmd": "kill", "target": set, "filter": map[string]any{"jids": jids}})
		if err != nil {
			return err
		}
		s.conn.line("MUTATE", line)
		if _, err := s.conn.text(); err != nil {
			return atBroker(err)
		}
	}
	return nil
}

// pause pauses queues.
func (s *faktorySink) pause(queues ...string) error {
	if len(queues) == 0 {
		return nil
	}
	s.conn.line(append([]string{"QUEUE", "PAUSE"}, queues...)...)
	_, err := s.conn.text()
	return atBroker(err)
}

// faktoryJob is a job of the source.
type faktoryJob struct {
	jid    string
	queue  string
	body   json.RawMessage
	member string // member of the list or set at the source
	broken string // why it is not a job
}

// jobOf reads the jid of a job.
func jobOf(body json.RawMessage) (*faktoryJob, error) {
	var j struct {
		JID   string `json:"jid"`
		Queue string `json:"queue"`
	}
	if err := json.Unmarshal(body, &j); err != nil {
		return nil, fmt.Errorf("job of the source: %w", err)
	}
	if j.JID == "" {
		return nil, errors.New("job of the source without a jid")
	}
	return &faktoryJob{jid: j.JID, queue: cmp.Or(j.Queue, "default"), body: body}, nil
}

// compact is JSON on one line, with the bytes of strings unchanged.
func compact(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}
