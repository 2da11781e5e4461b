package service

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"broker/access"
	"broker/core"
)

// Backup copies the store to a new folder on the broker's host.
func (s *Service) Backup(ctx context.Context, caller Caller, dir string) (time.Duration, error) {
	if err := s.mayBackup(caller, dir); err != nil {
		return 0, err
	}
	begin := s.Now()
	if err := s.o.Store.Backup(dir); err != nil {
		return 0, err
	}
	c := s.open(caller)
	defer c.Close()
	commit := s.note(c, AuditEntry{Action: backupAction, Target: dir})
	return s.Now().Sub(begin), c.committed(ctx, commit)
}

// BackupStream is a copy of the store as a tar file.
type BackupStream interface {
	io.WriterTo
	Size() int64  // in bytes
	Close() error // removes the copy
}

// SendBackup copies the store to the client. The caller closes the stream.
func (s *Service) SendBackup(ctx context.Context, caller Caller) (BackupStream, error) {
	if err := caller.mayAll(access.Admin); err != nil {
		return nil, err
	}
	if s.o.Store == nil {
		return nil, errNothingStored
	}
	stream, err := s.o.Store.SendBackup()
	if err != nil {
		return nil, err
	}
	c := s.open(caller)
	defer c.Close()
	if err := c.committed(ctx, s.note(c, AuditEntry{Action: backupAction})); err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	return stream, nil
}

// StartBackup is Backup in the background.
func (s *Service) StartBackup(ctx context.Context, caller Caller, dir string) (Operation, error) {
	if err := s.mayBackup(caller, dir); err != nil {
		return Operation{}, err
	}
	return s.start(ctx, caller, Operation{Action: backupAction, Target: dir},
		func(_ context.Context, op *operation) error {
			return s.runBackup(op, dir)
		})
}

func (s *Service) mayBackup(caller Caller, dir string) error {
	if err := caller.mayAll(access.Admin); err != nil {
		return err
	}
	if s.o.Store == nil {
		return errNothingStored
	}
	if !filepath.IsAbs(dir) {
		return invalid("dir", "dir must be the absolute path of a folder that does not exist yet")
	}
	return nil
}

// Drain is the state of draining.
type Drain struct {
	Draining bool `json:"draining"`
	Leased   int  `json:"leased" doc:"jobs that are still leased"`
}

// DrainOp returns the operation that starts or ends a drain. refuse decides whether new jobs are refused while it
// lasts; nil: as configured.
func (s *Service) DrainOp(on bool, refuse *bool) *core.Drain {
	refuses := s.o.DrainRefusesJobs
	if refuse != nil {
		refuses = *refuse
	}
	return &core.Drain{On: on, RefuseJobs: on && refuses}
}

// SetDrain starts or ends a drain, as DrainOp says.
func (s *Service) SetDrain(ctx context.Context, caller Caller, on bool, refuse *bool) (Drain, error) {
	if err := caller.mayAll(access.Operate); err != nil {
		return Drain{}, err
	}
	c := s.open(caller)
	defer c.Close()
	action := "resume"
	if on {
		action = "drain"
	}
	if err := s.audited(ctx, c, AuditEntry{Action: action}, s.DrainOp(on, refuse)); err != nil {
		return Drain{}, err
	}
	return s.drain(c)
}

// DrainState returns whether the broker is draining.
func (s *Service) DrainState(caller Caller) (Drain, error) {
	if err := caller.mayAll(access.Read); err != nil {
		return Drain{}, err
	}
	c := s.open(caller)
	defer c.Close()
	return s.drain(c)
}

// Reload reads the settings again.
func (s *Service) Reload(ctx context.Context, caller Caller) error {
	if err := caller.mayAll(access.Admin); err != nil {
		return err
	}
	if s.o.Host == nil {
		return &Error{Code: CodeUnsupported, Detail: "the settings of this broker cannot be read again"}
	}
	if err := s.o.Host.Reload(); err != nil {
		return &Error{Code: CodeInvalid, Detail: err.Error()}
	}
	c := s.open(caller)
	defer c.Close()
	return c.committed(ctx, s.note(c, AuditEntry{Action: "reload"}))
}

// Settings lists the current settings.
func (s *Service) Settings(caller Caller) ([]Setting, error) {
	if err := caller.mayAll(access.Admin); err != nil {
		return nil, err
	}
	if s.o.Host == nil {
		return nil, &Error{Code: CodeUnsupported, Detail: "this broker does not tell its settings"}
	}
	return s.o.Host.SettingsInForce(), nil
}

// Summary holds the counts of the broker.
type Summary struct {
	StartedAt time.Time              `json:"started_at"`
	Jobs      map[string]int         `json:"jobs" doc:"by state"`
	Queues    int                    `json:"queues"`
	Batches   int                    `json:"batches"`
	Clients   map[string]int         `json:"clients" doc:"open connections, by protocol"`
	Leased    map[string]int         `json:"leased" doc:"leased jobs, by the protocol of the worker"`
	Totals    Totals                 `json:"totals" doc:"since the creation of the store"`
	Days      []Day                  `json:"days" doc:"newest first, at most 180, UTC"`
	Reports   uint64                 `json:"-"` // progress reports and log lines since the broker started
	DiskFull  bool                   `json:"disk_full" doc:"new jobs are refused"`
	DiskSlow  bool                   `json:"disk_slow" doc:"a commit has not reached the disk within a second; requests wait for it"`
	Draining  bool                   `json:"draining"`
	Stopped   bool                   `json:"stopped" doc:"the store has failed"`
	Sockets   map[string]Connections `json:"sockets,omitempty" doc:"connections by front-end, since the broker started"`
}

// Totals counts events.
type Totals struct {
	Submitted uint64 `json:"submitted"`
	Leased    uint64 `json:"leased"`
	Done      uint64 `json:"done"`
	Failed    uint64 `json:"failed"`
	Dead      uint64 `json:"dead"`
	Expired   uint64 `json:"expired"`
	Cancelled uint64 `json:"cancelled"`
	Released  uint64 `json:"released"`
}

// Day counts the finishes of one day.
type Day struct {
	Date      string `json:"date" example:"2026-01-31"`
	Processed uint64 `json:"processed"`
	Failed    uint64 `json:"failed"`
}

// Summary returns the counts of the broker.
func (s *Service) Summary(ctx context.Context, caller Caller) (Summary, error) {
	if err := caller.mayAll(access.Read); err != nil {
		return Summary{}, err
	}
	c := s.open(caller)
	defer c.Close()
	r, err := c.call(ctx, &core.ReadStats{})
	if err != nil {
		return Summary{}, err
	}
	st := r.Stats
	v := Summary{
		StartedAt: st.StartedAt.Time(), Queues: st.Queues, Batches: st.Batches, Totals: Totals(st.Totals),
		DiskFull: st.DiskFull, DiskSlow: st.DiskSlow, Draining: st.Draining, Stopped: st.Stopped, Reports: st.Reports,
		Jobs: make(map[string]int), Clients: make(map[string]int), Leased: make(map[string]int),
		Days: make([]Day, len(st.History)),
	}
	for _, state := range core.States {
		v.Jobs[state.String()] = st.Jobs[state]
	}
	for _, p := range core.Protocols {
		if p != core.Internal {
			v.Clients[p.String()], v.Leased[p.String()] = st.Clients[p], st.LeasedBy[p]
		}
	}
	for i, d := range st.History {
		v.Days[i] = Day(d)
	}
	if s.o.Host != nil {
		v.Sockets = s.o.Host.Connections()
	}
	return v, nil
}

func (s *Service) drain(c *session) (Drain, error) {
	r, err := c.ask(&core.ReadStats{})
	if err != nil {
		return Drain{}, err
	}
	return Drain{Draining: r.Stats.Draining, Leased: r.Stats.Jobs[core.Leased]}, nil
}
