package cli

import (
	"encoding/json"
	"time"
)

// The parts of the API's answers that tables show. With -o json the answer is printed unchanged.

type job struct {
	ID          string          `json:"id"`
	Queue       string          `json:"queue"`
	Type        string          `json:"type"`
	State       string          `json:"state"`
	Priority    int             `json:"priority"`
	Origin      string          `json:"origin"`
	CreatedAt   *time.Time      `json:"created_at"`
	ReadyAt     *time.Time      `json:"ready_at"`
	RunAt       *time.Time      `json:"run_at"`
	ExpiresAt   *time.Time      `json:"expires_at"`
	LeasedAt    *time.Time      `json:"leased_at"`
	LeaseUntil  *time.Time      `json:"lease_until"`
	RerunOf     string          `json:"rerun_of"`
	CancelAt    *time.Time      `json:"cancel_requested_at"`
	Worker      string          `json:"worker"`
	Attempts    int             `json:"attempts"`
	Fails       int             `json:"fails"`
	MaxFails    int             `json:"max_fails"`
	MaxAttempts int             `json:"max_attempts"`
	Tags        []string        `json:"tags"`
	Traceparent string          `json:"traceparent"`
	Tracestate  string          `json:"tracestate"`
	UniqueKey   string          `json:"unique_key"`
	BodyBytes   int64           `json:"body_bytes"`
	Args        json.RawMessage `json:"args"`
	Body        *string         `json:"body"`
	BodyBase64  *string         `json:"body_base64"`
	Failure     *failure        `json:"failure"`
	Outcome     *outcome        `json:"outcome"`
	Epoch       uint32          `json:"epoch"`
}

type failure struct {
	Type      string     `json:"type"`
	Message   string     `json:"message"`
	Backtrace []string   `json:"backtrace"`
	FailedAt  *time.Time `json:"failed_at"`
	NextAt    *time.Time `json:"next_at"`
}

type outcome struct {
	Success      bool     `json:"success"`
	Result       *string  `json:"result"`
	ResultBase64 *string  `json:"result_base64"`
	Cause        string   `json:"cause"`
	Failure      *failure `json:"failure"`
}

type jobPage struct {
	Jobs   []job  `json:"jobs"`
	Cursor string `json:"cursor"`
}
