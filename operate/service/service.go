package service

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"broker/access"
	"broker/core"
)

// Options of the service. Any goroutine may call what is passed.
type Options struct {
	Broker core.Broker

	// Handles is the format of Gearman handles.
	Handles core.HandleFormat

	// MaxBodyBytes limits the body of a job; zero: core.MaxBodyBytes.
	MaxBodyBytes int

	// CommitTimeout is the time that a change waits for its commit; zero: client.DefaultCommitTimeout.
	CommitTimeout time.Duration

	Host    Host     // nil: the broker runs alone in a test
	Store   Store    // nil: nothing is stored
	Batches BatchIDs // nil: clients use the numbers of batches
	Faktory Faktory  // nil: the broker has no front-end for Faktory
	Cluster Cluster  // nil: the broker is not a node of one

	Support []SupportPart // additional files of a support bundle

	DrainRefusesJobs bool // default for whether draining refuses new jobs
}

// Host is the process in which the broker runs.
type Host interface {
	Connections() map[string]Connections // by front-end
	PushTargets() []PushTarget
	Reload() error // reads the settings again
	SettingsInForce() []Setting
	Audited(AuditEntry) // is called after each change
}

// Store is where the broker keeps its jobs.
type Store interface {
	Storage() (core.Storage, error)
	CheckStore(ctx context.Context, progress func(part float64)) (*CheckReport, error)
	Backup(dir string) error           // copies the store to a new folder
	BackupProgress(dir string) float64 // progress of the backup to dir, 0 to 1
	SendBackup() (BackupStream, error) // makes a copy of the store, to be sent to the client
}

// BatchIDs gives batches their ids.
type BatchIDs interface {
	// BatchName and ParseBatchName convert between batch numbers and ids.
	BatchName(number uint64) string
	ParseBatchName(name string) (number uint64, ok bool)

	// OpenBatch opens a batch by calling do, and prepares its id.
	OpenBatch(op *core.OpenBatch, do func(core.Op) core.Reply) core.Reply
}

// Faktory is the front-end that knows the processes of Faktory's workers.
type Faktory interface {
	WorkerProcesses() []FaktoryWorker
	SetWorkerState(wid, state string) error // to quiet or terminate; core.ErrNotFound
}

// Connections counts the connections of one front-end.
type Connections struct {
	Open      int    `json:"open"`
	Accepted  uint64 `json:"accepted"`
	Refused   uint64 `json:"refused" doc:"closed because of the connection limit"`
	Denied    uint64 `json:"denied" doc:"refused by the allow-list"`
	Dismissed uint64 `json:"dismissed" doc:"closed because the client had no right and sent too much, did not log in or made room for others, or was above its share"`
	Late      uint64 `json:"-"` // replies that left late: nothing had woken their connection
}

// FaktoryWorker is a connected Faktory worker process.
type FaktoryWorker struct {
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

// Setting is a current setting.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value" doc:"in the format of the configuration; secrets are hidden"`
	Source string `json:"source" doc:"default, file, environment or flag"`
}

// Service offers the broker as blocking calls. Any goroutine may use it.
type Service struct {
	o        Options
	follows  bool            // see NewFollower
	ctx      context.Context // ends with Close
	end      context.CancelFunc
	running  sync.WaitGroup // operations, and the event hub
	tokenKey atomic.Pointer[[tokenKeyBytes]byte]
	audit    auditLog
	merging  sync.Mutex // serializes changes that depend on the current settings of a queue

	operations operations
	marks      marks
	events     eventHub
	keys       usedKeys
}

// New makes a service on an open broker, and reads its stored data.
func New(o Options) (*Service, error) {
	s := newService(o)
	s.events.ctx, s.events.places = s.ctx, access.NewPool(maxListeners)
	s.operations.open()
	if err := s.loadTokenKey(); err != nil {
		return nil, err
	}
	if err := s.loadAudit(); err != nil {
		return nil, err
	}
	if err := s.loadOperations(); err != nil {
		return nil, err
	}
	if err := s.loadMarks(); err != nil {
		return nil, err
	}
	if err := s.loadKeys(); err != nil {
		return nil, err
	}
	return s, nil
}

func newService(o Options) *Service {
	if o.MaxBodyBytes <= 0 {
		o.MaxBodyBytes = core.MaxBodyBytes
	}
	s := &Service{o: o}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Close ends the background operations and waits for them.
func (s *Service) Close() {
	s.end()
	s.running.Wait()
}

// Now is the broker's clock.
func (s *Service) Now() core.Instant { return s.o.Broker.Now() }

// timeOf converts an instant; nil for none, so that the member is left out.
func timeOf(at core.Instant) *time.Time {
	if at == 0 {
		return nil
	}
	t := at.Time()
	return &t
}
