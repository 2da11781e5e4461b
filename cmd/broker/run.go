package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/config"
	"broker/core"
	"broker/core/archive"
	"broker/core/engine"
	"broker/frontends/access"
	"broker/frontends/eventloop"
	"broker/operate/hostile"
	"broker/operate/httpapi"
	"broker/operate/otlp"
	"broker/operate/push"
	"broker/operate/service"
)

// Deadlines of a shutdown. In total they stay below five seconds, the shortest patience of common supervisors.
const (
	notifyFor = time.Second             // for clients to learn of the shutdown, where the protocol can tell them
	drainFor  = 3 * time.Second         // for replies that wait for their commit, and for slow readers
	stopFor   = 4500 * time.Millisecond // for everything
)

// gracefulPoll is how often a graceful shutdown checks whether the work is done.
const gracefulPoll = 200 * time.Millisecond

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "run the broker until SIGTERM or SIGINT",
		Long: "Run the broker until SIGTERM or SIGINT. SIGHUP reloads the settings. SIGUSR1 stops handing out jobs, so that workers\n" +
			"can finish before a restart; SIGUSR2 resumes.",
		Args: cobra.NoArgs,
	}
	sources := settingFlags(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		sockets, err := activatedSockets()
		if err != nil {
			return cli.Failed(err)
		}
		all, err := sockets.override(sources)
		if err != nil {
			return cli.Failed(err)
		}
		c, err := loadSettings(all())
		if err != nil {
			return err
		}
		return cli.Failed(serve(&c, all, sockets))
	}
	return cmd
}

// serve runs a broker. On SIGHUP it reads the settings from sources again.
func serve(c *config.Config, sources func() config.Sources, sockets activated) error {
	log := newLogger(c.Log, os.Stderr)
	p := &process{
		config: *c, log: log, sockets: sockets, shutdowns: make(chan shutdown, 1), drainRequests: make(chan bool, 4),
	}
	p.reread = func() (config.Config, error) { return readSettings(sources()) }
	p.watchSignals(map[os.Signal]func(){
		syscall.SIGTERM: func() { p.requestShutdown(shutdown{}) },
		syscall.SIGINT:  func() { p.requestShutdown(shutdown{}) },
		syscall.SIGHUP:  func() { _ = p.reloadAll() }, // the log has it
		syscall.SIGUSR1: func() { p.requestDrain(true) },
		syscall.SIGUSR2: func() { p.requestDrain(false) },
	})
	return p.run()
}

// shutdown is a request to stop.
type shutdown struct {
	graceful bool
	cause    error // the program exits with this error
}

// process is the broker as a program: its parts, in the order in which they are built.
type process struct {
	config        config.Config
	log           zerolog.Logger
	shutdowns     chan shutdown // capacity 1: the first request counts
	drainRequests chan bool     // nil: nothing requests draining
	reloads       reloadGuard   // guards config once clients are served

	sockets activated // listening sockets that systemd passed

	reread func() (config.Config, error) // reads the settings again; nil: all of them come from the command line

	// Set by gearmand's and beanstalkd's command lines; the zero values are those of serve.
	refuseOnly         bool             // draining refuses new jobs and goes on handing out those that are there
	verbosity          string           // reply to the text command verbose
	clientCertOptional bool             // with tls_client_ca, clients without a certificate are accepted too
	gearmanHTTP        string           // address of gearmand's HTTP protocol; empty: it is not served
	onBound            func() error     // called once the addresses are bound, before anything else is touched
	onReady            func() error     // called once clients are served
	faults             *hostile.Options // of broker test; nil: clients meet no faults

	retryUntil    time.Time // deadline of bind_retry
	certificates  []*certificates
	denied        map[string]*denialCounter // by front-end
	server        *eventloop.Server
	httpListeners []net.Listener
	http          *http.Server
	access        *access.Control
	cluster       *clusterNode // nil: the broker is not a node of a cluster
	api           *httpapi.Server
	service       *service.Service
	engine        *engine.Engine
	broker        core.Broker     // what clients use: the engine, unless it is hostile
	hostile       *hostile.Broker // nil: clients meet no faults
	frontends     frontendSet
	sqs           *sqsPort // nil: it is off
	routes        routes
	routeEpoch    atomic.Uint64
	schedules     scheduleLoader
	tracing       *otlp.Exporter // nil: no spans are sent
	pusher        *push.Pusher   // nil until clients are served
	sending       sync.Mutex     // held while a backup is sent

	archive *archive.Writer // nil: there is none
}

// requestShutdown requests a shutdown. Any goroutine may call it.
func (p *process) requestShutdown(e shutdown) {
	select {
	case p.shutdowns <- e:
	default:
	}
}

// watchSignals calls the function of each signal, on a goroutine that ends with the program.
func (p *process) watchSignals(actions map[os.Signal]func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, slices.Collect(maps.Keys(actions))...)
	go func() {
		for s := range signals {
			p.log.Info().Stringer("signal", s).Msg("signal received")
			actions[s]()
		}
	}()
}

// requestDrain stops or resumes handing out jobs; before clients are served, the request waits. Any goroutine may call it.
func (p *process) requestDrain(on bool) {
	select {
	case p.drainRequests <- on:
	default: // several requests are already waiting
	}
}

// waitForShutdown handles drain requests until a shutdown is requested.
func (p *process) waitForShutdown() shutdown {
	for {
		select {
		case e := <-p.shutdowns:
			return e
		case on := <-p.drainRequests:
			if p.refuseOnly {
				p.api.Drain(false, on)
			} else {
				p.api.Drain(on, on && p.config.DrainRejectsNewJobs)
			}
		}
	}
}

// run builds the parts, serves until a shutdown is requested, and closes the parts in reverse order.
func (p *process) run() error {
	tuneGC()
	p.access = &access.Control{}
	p.retryUntil = time.Now().Add(p.config.BindRetry)
	if p.config.Cluster.Enabled() {
		return p.runCluster()
	}
	if stopped, err := p.listen(); err != nil || stopped {
		return err
	}
	if p.onBound != nil {
		if err := p.onBound(); err != nil {
			return err
		}
	}
	p.serveHTTP()
	stopRequested, err := p.openStore()
	if err != nil || stopRequested {
		p.server.StopAccepting()
		_ = p.http.Close() // no request needs a graceful end
		return err
	}
	if err := p.serveClients(); err != nil {
		return errors.Join(err, p.stop())
	}
	p.announce()
	if p.onReady != nil {
		if err := p.onReady(); err != nil {
			return errors.Join(err, p.stop())
		}
	}
	p.notifyReady()
	if p.reloads.begin() {
		_ = p.reload() // it has logged what is wrong
	}
	end := p.waitForShutdown()
	if end.graceful {
		p.drainJobs()
	}
	return errors.Join(end.cause, p.stop())
}

// openStore opens the engine. It gives up when a shutdown is requested meanwhile, which leaves the store as it was.
func (p *process) openStore() (stopRequested bool, err error) {
	type opened struct {
		engine *engine.Engine
		err    error
	}
	done := make(chan opened, 1)
	go func() {
		e, err := p.openEngine()
		done <- opened{e, err}
	}()
	select {
	case o := <-done:
		p.engine = o.engine
		return false, o.err
	case <-p.shutdowns:
		return true, nil
	}
}

func (p *process) engineOptions() engine.Options {
	c := &p.config
	return engine.Options{
		Dir:              c.Data,
		Durability:       map[string]engine.Durability{"sync": engine.Sync, "relaxed": engine.Relaxed, "none": engine.None}[c.Durability],
		SyncEvery:        c.SyncInterval,
		CacheBytes:       int(c.CacheBytes),
		DefaultLease:     c.DefaultLease,
		PoisonAfter:      cmp.Or(c.PoisonAfter, -1),
		MinFreeDiskBytes: uint64(c.MinFreeDisk),
		Wakeup:           engine.Wakeup(c.Gearman.WorkerWakeup),
		Clock:            p.clock(),
		Listener:         listeners{logListener{log: p.log}, p.api.Listener(), p.exitOnFailure()},
		Progress:         p.api.Progress,
		Archive:          p.newArchive(),
	}
}

// serveClients starts the front-ends.
func (p *process) serveClients() error {
	p.broker = p.engine
	if p.faults != nil {
		p.hostile = hostile.New(p.engine, *p.faults)
		p.broker = p.hostile
	}
	p.applyLimits(&config.Config{}, &p.config)
	p.applyPolicies(&config.Config{}, &p.config)
	p.applyKeepDone(nil, p.config.KeepDone)
	p.frontends = p.buildFrontends()
	if p.config.Qless.Listen != "off" {
		if err := p.frontends.qless.Start(); err != nil {
			return fmt.Errorf("start qless: %w", err)
		}
	}
	if err := p.serveSQS(); err != nil {
		return err
	}
	p.schedules = scheduleLoader{broker: p.engine, template: p.frontends.faktory.Template, log: p.log}
	p.schedules.load(p.config.Crons)
	if err := p.openService(); err != nil {
		return err
	}
	if err := p.openTracing(); err != nil {
		return err
	}
	loops := processors()
	if n := p.config.EventLoops; n > 0 {
		loops = n
	}
	maxConns := make(map[string]int)
	for _, f := range p.config.WireProtocols() {
		maxConns[f.Name] = f.MaxConnections
	}
	maxConns[gearmanHTTPName] = p.config.Gearman.MaxConnections
	if n := maxConns["faktory"]; n > 0 {
		// Faktory clients above the limit are refused after their HELLO; the loop's limit is for those that never send one.
		maxConns["faktory"] = n + n/8 + 16
	}
	err := p.server.Serve(eventloop.Options{
		Broker: p.engine, Frontends: p.frontends.byName, Handoffs: p.handoffs(), MaxConns: maxConns,
		MaxSockets: processSocketLimits().clients, MaxOutput: int(p.config.Limits.OutputBytes), Loops: loops, Log: p.log,
	})
	if err != nil {
		return err
	}
	p.openPush()
	p.api.Ready(p.backend())
	return nil
}

// notifyFaktoryClients gives Faktory clients time to learn of the shutdown with their next request.
func (p *process) notifyFaktoryClients() {
	if p.frontends.faktory == nil || p.connections()["faktory"].Open == 0 {
		return
	}
	p.frontends.faktory.Shutdown()
	for end := time.Now().Add(notifyFor); time.Now().Before(end) && p.connections()["faktory"].Open > 0; {
		time.Sleep(notifyFor / 50)
	}
}

// connections counts the connections of each front-end.
func (p *process) connections() map[string]service.Connections {
	all := make(map[string]service.Connections)
	for name, c := range p.server.Counts() {
		all[name] = service.Connections{Open: c.Open, Accepted: c.Accepted, Refused: c.Refused}
	}
	for name, d := range p.denied {
		c := all[name]
		c.Denied = d.denied.Load()
		all[name] = c
	}
	return all
}

// drainJobs accepts no connections and waits until no unfinished job or no client is left.
func (p *process) drainJobs() {
	p.log.Info().Msg("waiting for jobs to finish before shutdown")
	p.server.StopAccepting()
	client := p.engine.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})
	defer p.engine.Close(client)
	for p.busy(client) {
		select {
		case e := <-p.shutdowns:
			if !e.graceful {
				return
			}
		case <-time.After(gracefulPoll):
		}
	}
}

// busy reports that there are both connections and unfinished jobs.
func (p *process) busy(client core.ClientID) bool {
	open := 0
	for _, c := range p.server.Counts() {
		open += c.Open
	}
	if open == 0 || p.engine.Stopped() {
		return false
	}
	for _, r := range p.engine.Do(client, []core.Op{&core.ReadStats{}}, nil) {
		if r.Stats == nil {
			continue
		}
		for _, state := range core.States {
			if state.Unfinished() && r.Stats.Jobs[state] > 0 {
				return true
			}
		}
	}
	return false
}

// stop sends the replies that are committed and closes everything. It returns in time even if a part hangs.
func (p *process) stop() error {
	p.log.Info().Msg("stopping")
	p.notify(daemon.SdNotifyStopping)
	done := make(chan error, 1)
	go func() { done <- p.closeAll() }()
	select {
	case err := <-done:
		if err == nil {
			p.log.Info().Msg("stopped")
		}
		return err
	case <-time.After(stopFor):
		return fmt.Errorf("shutdown did not finish within %v", stopFor)
	}
}

// closeAll closes the parts in reverse order.
func (p *process) closeAll() error {
	p.reloads.end()
	p.api.Stopping()
	if p.service != nil {
		p.service.Close()
	}
	p.server.StopAccepting()
	// What a connection that is closed here held goes to no other connection: that one is closed next.
	core.DoOnce(p.engine, core.Internal, &core.Drain{On: true})
	p.notifyFaktoryClients()
	ctx, cancel := context.WithTimeout(context.Background(), drainFor)
	defer cancel()
	pushed := p.closePush(ctx)
	p.sqs.stop(ctx)
	p.server.Stop(ctx)
	<-pushed
	if p.tracing != nil {
		p.tracing.Close()
	}
	err := p.engine.Shutdown()
	_ = p.http.Shutdown(ctx) // a scrape that is interrupted will be repeated
	return err
}
