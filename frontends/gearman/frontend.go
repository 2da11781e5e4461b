package gearman

import (
	"net"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/gearman/packet"
)

// Options of the front-end. The zero value behaves like gearmand with its defaults.
type Options struct {
	frontends.Options

	// Version is the answer to the text command version. Empty: 1.1.20.
	Version string

	// Verbosity is the answer to the text command verbose. Empty: ERROR.
	Verbosity string

	// Handles is the format of job handles.
	Handles core.HandleFormat

	// JobRetries is the number of attempts before a job fails permanently. Zero: no limit.
	JobRetries uint32

	// ExceptionsForAll sends WORK_EXCEPTION also to clients that did not enable it.
	ExceptionsForAll bool

	// AllowShutdown enables the text command shutdown, which calls Shutdown.
	AllowShutdown bool
	Shutdown      func(graceful bool)

	// RouteEpoch returns a new number whenever the routes change. Nil: they never change.
	RouteEpoch func() uint64

	// NoJobDelay delays NO_JOB for a worker that has just had work. Under load the next job usually comes within this
	// time. That saves NO_JOB, PRE_SLEEP, NOOP and another grab: half of all packets of foreground jobs. An idle worker
	// gets its answer at once, so that a worker of several servers does not wait for an idle one. Zero: no delay.
	NoJobDelay time.Duration

	// Location is the time zone of SUBMIT_JOB_SCHED. Nil: the time zone of the host.
	Location *time.Location
}

// Frontend makes Gearman sessions. It is a frontends.Frontend.
type Frontend struct {
	broker    *access.Guard
	opts      Options
	workers   workerRegistry
	pipelines frontends.Pool[pipeline]
}

const (
	defaultBodyBytes = 64 << 20
	leastOutput      = 32 << 20            // the smallest default of Options.MaxOutputBytes
	maxHandleBytes   = core.MaxHandleBytes // for wire.go, which does not import core
)

// New makes the front-end of a broker.
func New(b *access.Guard, o Options) *Frontend {
	if o.Version == "" {
		o.Version = "1.1.20"
	}
	if o.Verbosity == "" {
		o.Verbosity = "ERROR"
	}
	o.MaxBodyBytes = min(o.WithDefaults(defaultBodyBytes, 0).MaxBodyBytes, core.MaxBodyBytes)
	o.Options = o.WithDefaults(0, max(o.MaxBodyBytes, leastOutput))
	if o.Location == nil {
		o.Location = time.Local
	}
	return &Frontend{broker: b, opts: o}
}

// Name implements frontends.Frontend.
func (f *Frontend) Name() string { return "gearman" }

// Bounds implements frontends.Frontend. The input limit is a little more than one packet of maximum size.
func (f *Frontend) Bounds() frontends.Bounds {
	return frontends.Bounds{
		MaxInput:  packet.HeaderBytes + f.opts.MaxBodyBytes + maxFieldsBytes + 1<<20,
		MaxOutput: f.opts.MaxOutputBytes,
	}
}

// Open implements frontends.Frontend.
func (f *Frontend) Open(c frontends.Conn) frontends.Session {
	s := &session{front: f, exceptions: f.opts.ExceptionsForAll, grabs: maxGrabs}
	s.Peer = frontends.NewPeer(f.broker, c)
	s.Init(s, &f.pipelines, maxPipeline)
	s.entry = f.workers.add(s.Client, c.FD(), ipOf(c.RemoteAddr()))
	return s
}

// Tick implements frontends.Frontend. Gearman has no periodic work.
func (f *Frontend) Tick(core.Instant) {}

// Overflow is the reply to a connection above the connection limit. It is a packet, because most clients speak the
// binary protocol and this client has not sent anything yet.
func (f *Frontend) Overflow() []byte {
	return appendPacket(nil, packet.Error, codeQueue, "Too many connections")
}

// ipOf is the address of a connection in the list of workers.
func ipOf(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().String()
	}
	return "-"
}
