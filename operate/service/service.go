package service

import (
	"context"
	"sync"
	"time"

	"broker/access"
	"broker/core"
)

// Options of the service. Any goroutine may call the functions. A nil function is not available.
type Options struct {
	Broker core.Broker

	// Handles is the format of Gearman handles.
	Handles core.HandleFormat

	// BatchName and ParseBatchName convert between batch numbers and ids; nil: clients use the number.
	BatchName      func(number uint64) string
	ParseBatchName func(name string) (number uint64, ok bool)

	// OpenBatch opens a batch by calling do, and prepares its id; nil: do is called directly.
	OpenBatch func(op *core.OpenBatch, do func(core.Op) core.Reply) core.Reply

	// MaxBodyBytes limits the body of a job; zero: core.MaxBodyBytes.
	MaxBodyBytes int

	// CommitTimeout is the time that a change waits for its commit; zero: client.DefaultCommitTimeout.
	CommitTimeout time.Duration

	// Audited is called after each change.
	Audited func(AuditEntry)

	Connections    func() map[string]Connections // by front-end
	Workers        func() []FaktoryWorker
	SetWorkerState func(wid, state string) error // to quiet or terminate; core.ErrNotFound
	Push           func() []PushTarget
	Backup         func(dir string) error       // copies the store to a new folder
	SendBackup     func() (BackupStream, error) // makes a copy of the store, to be sent to the client
	BackupProgress func(dir string) float64     // progress of the backup to dir, 0 to 1
	Reload         func() error                 // reads the settings again
	Storage        func() (core.Storage, error)
	CheckStore     func(ctx context.Context, progress func(part float64)) (*CheckReport, error)
	Settings       func() []Setting // in force

	Cluster *Cluster // nil: the broker is not a node of one

	Support []SupportPart // additional files of a support bundle

	DrainRejectsNewJobs bool // default for whether draining refuses new jobs
}

// Connections counts the connections of one front-end.
type Connections struct {
	Open      int    `json:"open"`
	Accepted  uint64 `json:"accepted"`
	Refused   uint64 `json:"refused" doc:"closed because of the connection limit"`
	Denied    uint64 `json:"denied" doc:"rejected by the allow-list"`
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
	ctx      context.Context // ends with Close
	end      context.CancelFunc
	running  sync.WaitGroup // operations, and the event hub
	tokenKey [tokenKeyBytes]byte
	audit    auditLog
	merging  sync.Mutex // serializes changes that depend on the current settings of a queue

	operations operations
	marks      marks
	events     eventHub
	keys       usedKeys
}

// New makes a service on an open broker, and reads its stored data.
func New(o Options) (*Service, error) {
	if o.MaxBodyBytes <= 0 {
		o.MaxBodyBytes = core.MaxBodyBytes
	}
	s := &Service{o: o}
	s.ctx, s.end = context.WithCancel(context.Background())
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
