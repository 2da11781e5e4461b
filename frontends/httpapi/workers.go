package httpapi

import (
	"errors"
	"math"
	"net/http"
	"time"

	"broker/core"
)

// Worker is a Faktory worker that is connected.
type Worker struct {
	WID, Hostname, Username string
	State                   string // running, quiet or terminate
	PID                     int64
	Labels                  []string
	Version                 int64 // of the protocol
	RSSKB                   int64
	Connections             int
	RemoteAddr              string
	StartedAt, BeatAt       core.Instant
}

// workerRow is a worker as it is told.
type workerRow struct {
	WID         string     `json:"wid"`
	State       string     `json:"state"`
	Hostname    string     `json:"hostname"`
	Username    string     `json:"username,omitempty"`
	PID         int64      `json:"pid"`
	Labels      []string   `json:"labels"`
	Version     int64      `json:"v"`
	RSSKB       int64      `json:"rss_kb"`
	Connections int        `json:"connections"`
	RemoteAddr  string     `json:"remote_addr,omitempty"`
	StartedAt   *time.Time `json:"started_at"`
	BeatAt      *time.Time `json:"beat_at"`
}

// CronEntry is a row of the timetable.
type CronEntry struct {
	Schedule, Type, Queue string
	Next                  core.Instant // zero: never
	Last                  core.Instant // zero: not since the start
}

// cronRow is an entry as it is told.
type cronRow struct {
	Schedule string     `json:"schedule"`
	Type     string     `json:"type"`
	Queue    string     `json:"queue,omitempty"`
	NextAt   *time.Time `json:"next_at,omitempty"`
	LastAt   *time.Time `json:"last_at,omitempty"`
}

// workers: GET /api/workers
func (s *Server) workers(*asker, *http.Request) (any, error) {
	known := s.backend.Load().Workers()
	rows := make([]workerRow, len(known))
	for i := range known {
		w := &known[i]
		rows[i] = workerRow{
			WID: w.WID, State: w.State, Hostname: w.Hostname, Username: w.Username, PID: w.PID,
			Labels: append([]string{}, w.Labels...), Version: w.Version, RSSKB: w.RSSKB, Connections: w.Connections,
			RemoteAddr: w.RemoteAddr, StartedAt: instant(w.StartedAt), BeatAt: instant(w.BeatAt),
		}
	}
	return map[string]any{"workers": rows}, nil
}

// dismiss: POST /api/workers/{wid}/quiet, or terminate; without a wid, all workers.
func (s *Server) dismiss(state string) func(a *asker, r *http.Request) (any, error) {
	return func(_ *asker, r *http.Request) (any, error) {
		b := s.backend.Load()
		wids := []string{r.PathValue("wid")}
		if wids[0] == "" {
			wids = nil
			for _, w := range b.Workers() {
				wids = append(wids, w.WID)
			}
		}
		told := 0
		for _, wid := range wids {
			switch err := b.SetWorkerState(wid, state); {
			case err == nil:
				told++
				s.options.Log.Info().Str("wid", wid).Str("state", state).Msg("worker told over http")
			case errors.Is(err, core.ErrNotFound) && r.PathValue("wid") == "": // it has left meanwhile
			case errors.Is(err, core.ErrNotFound):
				return nil, &Refusal{Status: http.StatusNotFound, Err: errors.New("no such worker")}
			default:
				return nil, err
			}
		}
		return map[string]any{"state": state, "workers": told}, nil
	}
}

// cron: GET /api/cron
func (s *Server) cron(*asker, *http.Request) (any, error) {
	known := s.backend.Load().Cron()
	rows := make([]cronRow, len(known))
	for i, e := range known {
		rows[i] = cronRow{e.Schedule, e.Type, e.Queue, instant(e.Next), instant(e.Last)}
	}
	return map[string]any{"entries": rows}, nil
}

// dayRow is what happened in one day, UTC.
type dayRow struct {
	Date      string `json:"date"`
	Processed uint64 `json:"processed"`
	Failed    uint64 `json:"failed"`
}

// history: GET /api/history?days=
func (s *Server) history(a *asker, r *http.Request) (any, error) {
	days, err := number(r.URL.Query(), "days", 30, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	reply, err := a.ask(&core.ReadStats{})
	if err != nil {
		return nil, err
	}
	known := reply.Stats.History
	rows := make([]dayRow, min(len(known), int(days)))
	for i := range rows {
		rows[i] = dayRow(known[i])
	}
	totals := reply.Stats.Totals
	return map[string]any{
		"days": rows, "total_processed": totals.Done + totals.Failed, "total_failed": totals.Failed,
	}, nil
}
