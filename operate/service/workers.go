package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"broker/access"
	"broker/core"
)

// Worker is a connection, or a worker that holds its jobs by name and not by connection: a Faktory worker, a Workq or
// HTTP client, a push target.
type Worker struct {
	ID          string     `json:"id" example:"conn:17" doc:"conn:N is a connection, worker:NAME a worker process, push:NAME a target of pushes"`
	Protocol    string     `json:"protocol" enum:"protocol"`
	Name        string     `json:"name,omitempty" doc:"the client's name for itself"`
	Address     string     `json:"address,omitempty"`
	Identity    string     `json:"identity,omitempty" doc:"subject of the TLS certificate"`
	Worker      string     `json:"worker,omitempty" doc:"of a connection: the worker process that it belongs to"`
	ConnectedAt *time.Time `json:"connected_at,omitempty"`
	Queues      []string   `json:"queues" doc:"queues that it is registered for, or waits at; at most 1,000 of a connection"`
	Waiting     bool       `json:"waiting" doc:"it waits for a job"`
	Held        []HeldJob  `json:"held" doc:"its leased jobs, at most 100"`

	State       string     `json:"state,omitempty" enum:"running,quiet,terminate" doc:"of a Faktory worker"`
	Hostname    string     `json:"hostname,omitempty"`
	Username    string     `json:"username,omitempty"`
	PID         int64      `json:"pid,omitempty"`
	Labels      []string   `json:"labels,omitempty"`
	RSSBytes    int64      `json:"rss_bytes,omitempty"`
	Connections int        `json:"connections,omitempty"`
	LastBeatAt  *time.Time `json:"last_beat_at,omitempty"`

	Push *PushTarget `json:"push,omitempty" doc:"of a URL to which the broker pushes jobs"`
}

// HeldJob is a job that a worker holds.
type HeldJob struct {
	Job        string     `json:"job" doc:"seq:N"`
	Queue      string     `json:"queue"`
	Type       string     `json:"type"`
	LeasedAt   *time.Time `json:"leased_at,omitempty"`
	LeaseUntil *time.Time `json:"lease_until,omitempty" doc:"none: until the connection ends"`
}

const (
	connPrefix   = "conn:"
	workerPrefix = "worker:"
)

// workerCursor is a position in a list of workers: first all connections, then the worker processes.
type workerCursor struct {
	Conn   core.ClientID `json:"c,omitempty"`
	Named  bool          `json:"n,omitempty"`
	Worker string        `json:"w,omitempty"`
}

// Workers lists the connections and worker processes of all protocols, or of one protocol. The cursor is empty on the
// last page.
func (s *Service) Workers(
	ctx context.Context, caller Caller, protocol string, limit int, cursor string,
) ([]Worker, string, error) {
	if err := caller.mayAll(access.Read); err != nil {
		return nil, "", err
	}
	only, err := parseProtocol(protocol)
	if err != nil {
		return nil, "", err
	}
	var at workerCursor
	if err := decodeCursor(cursor, &at); err != nil {
		return nil, "", err
	}
	c := s.open(caller)
	defer c.Close()
	workers := make([]Worker, 0, limit)
	for !at.Named {
		r, err := c.call(ctx, &core.ListClients{Protocol: only, After: at.Conn, Limit: limit - len(workers)})
		if err != nil {
			return nil, "", err
		}
		for i := range r.Clients {
			if info := &r.Clients[i]; info.ID != c.ID() && info.Protocol != core.Internal {
				workers = append(workers, connectionOf(info))
			}
		}
		at.Conn = r.NextClient
		at.Named = r.NextClient == 0
		if len(workers) == limit {
			return workers, encodeCursor(at), nil
		}
	}
	return s.namedWorkers(ctx, c, only, workers, limit, at)
}

// namedWorkers adds the worker processes.
func (s *Service) namedWorkers(
	ctx context.Context, c *session, only core.Protocol, workers []Worker, limit int, at workerCursor,
) ([]Worker, string, error) {
	held := make(map[string][]core.HeldJob)
	for cursor := uint64(0); ; {
		r, err := c.call(ctx, &core.ListWorkers{Cursor: cursor, Limit: corePage})
		if err != nil {
			return nil, "", err
		}
		for _, w := range r.Workers {
			held[w.Name] = w.Held
		}
		if cursor = r.NextWorker; cursor == 0 {
			break
		}
	}
	for _, w := range s.processes(held) {
		if only != core.Internal && w.Protocol != only.String() || w.Name <= at.Worker {
			continue
		}
		if len(workers) == limit {
			return workers, encodeCursor(at), nil
		}
		workers = append(workers, w)
		at.Worker = w.Name
	}
	return workers, "", nil
}

// parseProtocol reads the name of a protocol. An empty name is Internal, which means all protocols.
func parseProtocol(name string) (core.Protocol, error) {
	if p, known := core.ParseProtocol(name); known && p != core.Internal {
		return p, nil
	}
	if name == "" {
		return core.Internal, nil
	}
	return 0, invalid("protocol", "%q is not one of %s", name, strings.Join(core.ProtocolNames(), ", "))
}

func connectionOf(info *core.ClientInfo) Worker {
	w := Worker{
		ID: connPrefix + strconv.FormatUint(uint64(info.ID), 10), Protocol: info.Protocol.String(),
		Name:    text(info.Name),
		Address: info.Address, Identity: info.Identity, Worker: text(info.Worker), ConnectedAt: timeOf(info.OpenedAt),
		Queues: make([]string, len(info.Queues)), Waiting: info.Parked || info.Sleeping, Held: heldJobs(info.Held),
	}
	for i, q := range info.Queues {
		w.Queues[i] = text(q)
	}
	return w
}

func heldJobs(held []core.HeldJob) []HeldJob {
	jobs := make([]HeldJob, len(held))
	for i, h := range held {
		jobs[i] = HeldJob{
			Job: seqName(h.Seq), Queue: text(h.Queue), Type: text(cmp.Or(h.Type, h.Queue)),
			LeasedAt:   timeOf(h.LeasedAt),
			LeaseUntil: timeOf(h.LeaseUntil),
		}
	}
	return jobs
}

// processes returns the Faktory workers, the push targets, and all other workers that hold jobs, in the order of their
// names.
func (s *Service) processes(held map[string][]core.HeldJob) []Worker {
	all := s.pushWorkers(held)
	if s.o.Faktory != nil {
		for _, f := range s.o.Faktory.WorkerProcesses() {
			all = append(all, Worker{
				ID: workerPrefix + f.WID, Protocol: core.Faktory.String(), Name: text(f.WID), Address: f.RemoteAddr,
				ConnectedAt: timeOf(f.StartedAt), Queues: []string{}, Held: heldJobs(held[f.WID]), State: f.State,
				Hostname: f.Hostname, Username: f.Username, PID: f.PID, Labels: f.Labels, RSSBytes: f.RSSKB << 10,
				Connections: f.Connections, LastBeatAt: timeOf(f.BeatAt),
			})
			delete(held, f.WID)
		}
	}
	for name, jobs := range held {
		w := Worker{ID: workerPrefix + text(name), Name: text(name), Queues: []string{}, Held: heldJobs(jobs)}
		if len(jobs) > 0 {
			w.Protocol = jobs[0].Protocol.String()
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b Worker) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// SetWorkerState tells a Faktory worker (all of them if id is empty) to stop taking jobs (quiet) or to exit
// (terminate). It returns the number of notified workers.
func (s *Service) SetWorkerState(ctx context.Context, caller Caller, id, state string) (int, error) {
	if err := caller.mayAll(access.Operate); err != nil {
		return 0, err
	}
	if s.o.Faktory == nil {
		return 0, &Error{Code: CodeUnsupported, Detail: "no front-end can tell workers anything"}
	}
	wids := []string{strings.TrimPrefix(id, workerPrefix)}
	if strings.HasPrefix(id, connPrefix) {
		return 0, &Error{
			Code:   CodeUnsupported,
			Detail: "only Faktory workers can be told to be " + state + "; a connection can be disconnected",
		}
	}
	if id == "" {
		wids = nil
		for _, w := range s.o.Faktory.WorkerProcesses() {
			wids = append(wids, w.WID)
		}
	}
	told := 0
	for _, wid := range wids {
		switch err := s.o.Faktory.SetWorkerState(wid, state); {
		case err == nil:
			told++
		case !errors.Is(err, core.ErrNotFound):
			return told, err
		case id != "": // otherwise it has disconnected in the meantime
			return 0, &Error{Code: CodeWorkerNotFound, Detail: "there is no Faktory worker " + wid}
		}
	}
	c := s.open(caller)
	defer c.Close()
	commit := s.note(c, AuditEntry{Action: "worker." + state, Target: cmp.Or(id, "all")})
	return told, c.committed(ctx, commit)
}

// Disconnect closes a connection, which releases the jobs that it holds.
func (s *Service) Disconnect(ctx context.Context, caller Caller, id string) error {
	if err := caller.mayAll(access.Operate); err != nil {
		return err
	}
	digits, ok := strings.CutPrefix(id, connPrefix)
	number, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil {
		return &Error{Code: CodeWorkerNotFound, Detail: "only a connection (conn:N) can be disconnected"}
	}
	c := s.open(caller)
	defer c.Close()
	err = s.audited(ctx, c, AuditEntry{Action: "worker.disconnect", Target: id},
		&core.DisconnectClient{Client: core.ClientID(number)})
	if IsCode(err, CodeJobNotFound) || IsCode(err, CodeState) {
		return &Error{Code: CodeWorkerNotFound, Detail: "there is no connection " + id}
	}
	return err
}
