package gearman

import (
	"net"
	"time"

	"broker/core"
	"broker/frontends"
)

// Options of the front-end. The zero value is a gearmand with its defaults.
type Options struct {
	// Version is what the text command version says. Empty: 1.1.20.
	Version string

	// Verbosity is what the text command verbose says. Empty: ERROR.
	Verbosity string

	// Handles is the format of job handles.
	Handles core.HandleFormat

	// JobRetries is how many attempts a job has in all before it fails for good. Zero: no limit.
	JobRetries uint32

	// ExceptionsForAll sends WORK_EXCEPTION to clients that did not ask for it.
	ExceptionsForAll bool

	// AllowShutdown lets clients end the process by the text command shutdown, which calls Shutdown.
	AllowShutdown bool
	Shutdown      func(graceful bool)

	// MaxBodyBytes is the largest workload. Zero: 64 MiB.
	MaxBodyBytes int

	// MaxOutputBytes is how much may wait for a client that does not read. Zero: as MaxBodyBytes, but at
	// least 32 MiB.
	MaxOutputBytes int

	// Namespace stands in front of every queue of this front-end, unseen by its clients.
	Namespace string

	// Route says where jobs for a function go: to which queue, as which type; nil, or the same names: as they are. What
	// it changes is outside the namespace.
	Route func(queue, typ string) (string, string)

	// RouteEpoch is another number whenever Route has come to say something else; nil: it never does.
	RouteEpoch func() uint64

	// Linger is how long NO_JOB is held back from a worker that has just had work. Under load the next job comes sooner,
	// and that saves a NO_JOB, a PRE_SLEEP, a NOOP and another grab: half of all packets of foreground jobs. A worker
	// without work is told at once, so that one that goes round several servers loses nothing by an idle one. Zero: never.
	NoJobDelay time.Duration

	// Location is where the hours and days of SUBMIT_JOB_SCHED are told. Nil: the machine's.
	Location *time.Location
}

// Frontend makes Gearman sessions. It is a frontends.Frontend.
type Frontend struct {
	broker    core.Broker
	o         Options
	workers   workerRegistry
	pipelines frontends.Pool[pipeline]
}

const (
	leastOutput    = 32 << 20 // the smallest default of Options.MaxOutputBytes
	maxHandleBytes = core.MaxHandleBytes
)

// New makes the front-end of a broker.
func New(b core.Broker, o Options) *Frontend {
	if o.Version == "" {
		o.Version = "1.1.20"
	}
	if o.Verbosity == "" {
		o.Verbosity = "ERROR"
	}
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = 64 << 20
	}
	o.MaxBodyBytes = min(o.MaxBodyBytes, core.MaxBodyBytes)
	if o.MaxOutputBytes == 0 {
		o.MaxOutputBytes = max(o.MaxBodyBytes, leastOutput)
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	return &Frontend{broker: b, o: o}
}

// Name implements frontends.Frontend.
func (f *Frontend) Name() string { return "gearman" }

// Limits implements frontends.Frontend. The input holds one packet of the largest size and some behind it.
func (f *Frontend) Limits() frontends.Limits {
	return frontends.Limits{
		MaxInput:  headerBytes + f.o.MaxBodyBytes + maxFieldsBytes + 1<<20,
		MaxOutput: f.o.MaxOutputBytes,
	}
}

// Open implements frontends.Frontend.
func (f *Frontend) Open(c frontends.Conn) frontends.Session {
	s := &session{f: f, conn: c, exceptions: f.o.ExceptionsForAll, grabs: maxGrabs}
	s.client = f.broker.Open(frontends.ClientOptions(core.Gearman, c))
	s.entry = f.workers.add(s.client, c.FD(), ipOf(c.RemoteAddr()))
	return s
}

// Tick implements frontends.Frontend: nothing here goes by the clock.
func (f *Frontend) Tick(core.Instant) {}

// ipOf is the address that the list of workers shows.
func ipOf(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().String()
	}
	return "-"
}
