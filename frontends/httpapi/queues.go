package httpapi

import (
	"math"
	"net/http"

	"broker/core"
)

// pageOfQueues is how many queues one answer lists.
const pageOfQueues = 1000

// queueRow is a queue as it is told.
type queueRow struct {
	Name      string       `json:"name"`
	Ready     int          `json:"ready"`
	High      int          `json:"high"`
	Normal    int          `json:"normal"`
	Low       int          `json:"low"`
	Scheduled int          `json:"scheduled"`
	Leased    int          `json:"leased"`
	Retrying  int          `json:"retrying"`
	Blocked   int          `json:"blocked"`
	Done      int          `json:"done"`
	Dead      int          `json:"dead"`
	Workers   int          `json:"workers"` // Gearman workers that are able
	Paused    bool         `json:"paused"`
	Latency   float64      `json:"latency"` // seconds that the next job out has waited
	Max       *maxRow      `json:"max,omitempty"`
	Throttle  *throttleRow `json:"throttle,omitempty"`
}

// maxRow bounds the jobs of a queue, 0 for no bound.
type maxRow struct {
	High   uint32 `json:"high"`
	Normal uint32 `json:"normal"`
	Low    uint32 `json:"low"`
}

// throttleRow bounds the leases of a queue, 0 for no bound.
type throttleRow struct {
	Concurrency uint32  `json:"concurrency"`
	Worker      uint32  `json:"worker"`
	Timeout     float64 `json:"timeout"` // seconds
}

// queues: GET /api/queues?prefix=&offset=&limit=
func (s *Server) queues(a *asker, r *http.Request) (any, error) {
	q := r.URL.Query()
	offset, err := number(q, "offset", 0, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	limit, err := number(q, "limit", pageOfQueues, pageOfQueues)
	if err != nil {
		return nil, err
	}
	if limit == 0 {
		limit = pageOfQueues
	}
	reply, err := a.ask(&core.ListQueues{Prefix: q.Get("prefix"), Offset: int(offset), Limit: int(limit)})
	if err != nil {
		return nil, err
	}
	now := a.b.Now()
	rows := make([]queueRow, len(reply.Queues))
	for i := range reply.Queues {
		rows[i] = rowOfQueue(&reply.Queues[i], now)
	}
	return map[string]any{"queues": rows}, nil
}

// queue: GET /api/queues/{name}
func (s *Server) queue(a *asker, r *http.Request) (any, error) {
	reply, err := a.ask(&core.InspectQueue{Queue: r.PathValue("name")})
	if err != nil {
		return nil, err
	}
	return rowOfQueue(&reply.Queues[0], a.b.Now()), nil
}

func rowOfQueue(q *core.QueueInfo, now core.Instant) queueRow {
	row := queueRow{
		Name: q.Name, Ready: q.Ready(), High: q.High, Normal: q.Normal, Low: q.Low, Scheduled: q.Scheduled,
		Leased: q.Leased, Retrying: q.Retrying, Blocked: q.Blocked, Done: q.Done, Dead: q.Dead, Workers: q.Workers,
		Paused: q.Paused,
	}
	if q.NextEnqueuedAt != 0 {
		row.Latency = max(now.Sub(q.NextEnqueuedAt), 0).Seconds()
	}
	if l := q.Limits; l.MaxHigh|l.MaxNormal|l.MaxLow != 0 {
		row.Max = &maxRow{l.MaxHigh, l.MaxNormal, l.MaxLow}
	}
	if t := q.Limits.Throttle; t != (core.Throttle{}) {
		row.Throttle = &throttleRow{t.Leased, t.LeasedPerWorker, t.SlotFor.Seconds()}
	}
	return row
}

// pause: POST /api/queues/{name}/pause and resume.
func (s *Server) pause(paused bool) func(a *asker, r *http.Request) (any, error) {
	return func(a *asker, r *http.Request) (any, error) {
		name := r.PathValue("name")
		if _, err := a.ask(&core.InspectQueue{Queue: name}); err != nil {
			return nil, err
		}
		if _, err := a.ask(&core.PauseQueue{Queue: name, Paused: paused}); err != nil {
			return nil, err
		}
		s.options.Log.Info().Str("queue", name).Bool("paused", paused).Msg("queue paused or resumed over http")
		return map[string]any{"paused": paused}, nil
	}
}

// remove: POST /api/queues/{name}/remove drops the waiting jobs and the settings, as Faktory's QUEUE REMOVE does.
func (s *Server) remove(a *asker, r *http.Request) (any, error) {
	name := r.PathValue("name")
	if _, err := a.ask(&core.InspectQueue{Queue: name}); err != nil {
		return nil, err
	}
	removed := 0
	for op := (core.Purge{Queue: name, States: []core.State{core.Ready}, Drop: true}); ; {
		page := op // the broker may keep what it is given
		reply, err := a.ask(&page)
		if err != nil {
			return nil, err
		}
		removed += reply.N
		if op.Cursor = reply.Cursor; op.Cursor == 0 {
			s.options.Log.Info().Str("queue", name).Int("jobs", removed).Msg("queue removed over http")
			return map[string]any{"removed": removed}, nil
		}
	}
}
