package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/config"
	"broker/core"
	"broker/core/engine"
	"broker/frontends/console"
	"broker/frontends/eventloop"
)

// The times of an end. Together they stay below the five seconds after which supervisors lose patience.
const (
	lastWordsFor = time.Second             // for clients to be told of the end, where the protocol has a word for it
	drainFor     = 3 * time.Second         // for replies that wait for their commit and clients that read slowly
	stopFor      = 4500 * time.Millisecond // for all of it
)

// gracefulPoll is how often a graceful end looks whether the work is done.
const gracefulPoll = 200 * time.Millisecond

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "serve clients until TERM or INT",
		Long:  "Serve clients until TERM or INT. HUP reads the settings again; USR1 stops and USR2 resumes handing out jobs.",
		Args:  cobra.NoArgs,
	}
	sources := settingFlags(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		c, err := loadSettings(sources())
		if err != nil {
			return err
		}
		return cli.Failed(serve(&c, sources))
	}
	return cmd
}

// serve runs a broker with settings that sources can read again.
func serve(c *config.Config, sources func() config.Sources) error {
	log := newLogger(c.Log, os.Stderr)
	p := &process{config: *c, log: log, asked: make(chan end, 1), drains: make(chan bool, 4)}
	p.settings = func() (config.Config, error) { return readSettings(sources()) }
	p.watchSignals(map[os.Signal]func(){
		syscall.SIGTERM: func() { p.ask(end{}) },
		syscall.SIGINT:  func() { p.ask(end{}) },
		syscall.SIGHUP:  p.reload,
		syscall.SIGUSR1: func() { p.drain(true) },
		syscall.SIGUSR2: func() { p.drain(false) },
	})
	return p.run()
}

// end is a wish to stop.
type end struct{ graceful bool }

// process is the broker as one program: its parts in the order in which they are built.
type process struct {
	config config.Config
	log    zerolog.Logger
	asked  chan end  // capacity 1: the first wish counts
	drains chan bool // nil: nobody can ask
	live   live      // guards config from the moment clients are served

	settings func() (config.Config, error) // reads them again; nil: they are those of the command line alone

	// What gearmand's command line adds; the zero values are serve's.
	verbosity string       // what the text command verbose says
	anyClient bool         // a client that shows no certificate is let in where tls_client_ca is set
	bound     func() error // called once the addresses are taken and nothing else was touched
	ready     func() error // called once clients are served

	certificates []*certificates
	denials      map[string]*door // by front-end
	doors        *eventloop.Server
	web          []net.Listener
	http         *http.Server
	console      *console.Console
	engine       *engine.Engine
	frontends    served
	routes       routes
	routeEpoch   atomic.Uint64
	timetable    *timetable
}

// ask asks for the end. Any goroutine.
func (p *process) ask(e end) {
	select {
	case p.asked <- e:
	default:
	}
}

// watchSignals calls the function of each signal, from a goroutine that ends with the program.
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

// drain asks to stop or to resume handing out jobs; during the start that waits until clients are served. Any goroutine.
func (p *process) drain(on bool) {
	select {
	case p.drains <- on:
	default: // so many wishes at once make no sense
	}
}

// serveUntilAsked waits for the end.
func (p *process) serveUntilAsked() end {
	for {
		select {
		case e := <-p.asked:
			return e
		case on := <-p.drains:
			p.console.Drain(on, p.config.DrainRefusesJobs)
		}
	}
}

// run builds the parts, serves until it is asked to end, and takes them down in reverse.
func (p *process) run() error {
	steadyCollector()
	if err := p.listen(); err != nil {
		return err
	}
	if p.bound != nil {
		if err := p.bound(); err != nil {
			return err
		}
	}
	p.serveHTTP()
	asked, err := p.openStore()
	if err != nil || asked {
		p.doors.StopAccepting()
		_ = p.http.Close() // nobody is owed an answer
		return err
	}
	if err := p.serveClients(); err != nil {
		return errors.Join(err, p.stop())
	}
	p.announce()
	if p.ready != nil {
		if err := p.ready(); err != nil {
			return errors.Join(err, p.stop())
		}
	}
	p.live.begin()
	if p.serveUntilAsked().graceful {
		p.finishWork()
	}
	return p.stop()
}

// listen takes all addresses before anything else happens: a taken one is known at once, and nothing was touched.
func (p *process) listen() error {
	listeners, certs, err := p.places()
	if err != nil {
		return err
	}
	p.certificates = certs
	var errs []error
	if p.doors, err = eventloop.Bind(listeners); err != nil {
		errs = append(errs, err)
	}
	if err := p.openWeb(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return nil
	}
	if p.doors != nil {
		p.doors.StopAccepting()
	}
	for _, ln := range p.web {
		_ = ln.Close() // nobody has used it
	}
	return errors.Join(errs...)
}

// serveHTTP answers from now on, so that a long start can be watched.
func (p *process) serveHTTP() {
	p.console = console.New(console.Options{
		Version: buildVersion(), Password: p.config.WebPassword(), Log: p.log, DrainRefusesJobs: p.config.DrainRefusesJobs,
		Profiling: p.config.HTTP.Profiling, MaxConns: grantedSockets().web,
	})
	p.http = p.console.Server()
	for _, ln := range p.web {
		go func() { // ends when p.http is closed
			if err := p.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				p.log.Error().Err(err).Msg("http ended")
			}
		}()
	}
}

// openStore opens the engine. It gives up if it is asked to end meanwhile: what is on disk does not mind.
func (p *process) openStore() (asked bool, err error) {
	type opened struct {
		engine *engine.Engine
		err    error
	}
	done := make(chan opened, 1)
	go func() {
		e, err := engine.Open(p.engineOptions())
		done <- opened{e, err}
	}()
	select {
	case o := <-done:
		p.engine = o.engine
		return false, o.err
	case <-p.asked:
		return true, nil
	}
}

func (p *process) engineOptions() engine.Options {
	c := &p.config
	return engine.Options{
		Dir:            c.Data,
		Durability:     map[string]engine.Durability{"sync": engine.Sync, "relaxed": engine.Relaxed, "none": engine.None}[c.Durability],
		SyncEvery:      c.SyncInterval,
		CacheBytes:     int(c.CacheBytes),
		DefaultLease:   c.DefaultLease,
		DiskFloorBytes: uint64(c.DiskFloor),
		Wakeup:         engine.Wakeup(c.Gearman.WorkerWakeup),
		Clock:          theClock(),
		Listener:       listeners{logListener{log: p.log}, p.console.Listener()},
		Progress:       p.console.Progress,
	}
}

// serveClients starts the front-ends.
func (p *process) serveClients() error {
	p.throttle(nil, p.config.Throttles)
	p.frontends = p.buildFrontends()
	loops := processors()
	if n := p.config.EventLoops; n > 0 {
		loops = n
	}
	maxConns := make(map[string]int)
	for _, f := range protocols(&p.config) {
		maxConns[f.name] = f.MaxConnections
	}
	if n := maxConns["faktory"]; n > 0 {
		// Faktory clients are refused after their HELLO; the loop's own bound is for those that never send one.
		maxConns["faktory"] = n + n/8 + 16
	}
	err := p.doors.Serve(eventloop.Options{
		Broker: p.engine, Frontends: p.frontends.byName, MaxConns: maxConns,
		MaxSockets: grantedSockets().clients, MaxOutput: int(p.config.Limits.OutputBytes), Loops: loops, Log: p.log,
	})
	if err != nil {
		return err
	}
	p.timetable = startTimetable(p.engine, p.frontends.faktory, p.log, p.config.Crons)
	p.console.Ready(p.backend())
	return nil
}

// lastWords gives Faktory clients the time to hear, on their next request, that the server is going.
func (p *process) lastWords() {
	if p.frontends.faktory == nil || p.connections()["faktory"].Open == 0 {
		return
	}
	p.frontends.faktory.Shutdown()
	for end := time.Now().Add(lastWordsFor); time.Now().Before(end) && p.connections()["faktory"].Open > 0; {
		time.Sleep(lastWordsFor / 50)
	}
}

// connections are the counters of the doors as the console wants them.
func (p *process) connections() map[string]console.Connections {
	all := make(map[string]console.Connections)
	for name, c := range p.doors.Counts() {
		all[name] = console.Connections{Open: c.Open, Accepted: c.Accepted, Refused: c.Refused}
	}
	for name, d := range p.denials {
		c := all[name]
		c.Denied = d.denied.Load()
		all[name] = c
	}
	return all
}

// announce says where clients are served and how they are kept out.
func (p *process) announce() {
	c := &p.config
	for _, f := range protocols(c) {
		p.announceOne(f.name, f.Protocol, f.name == "faktory" && c.Faktory.Password != "")
	}
	p.announceOne("http", config.Protocol{
		Listen: c.HTTP.Listen, Allow: c.HTTP.Allow, TLSCert: c.HTTP.TLSCert, TLSClientCA: c.HTTP.TLSClientCA,
	}, c.WebPassword() != "")
	if info, err := os.Stat(c.Data); err == nil && c.Durability != "none" && info.Mode().Perm()&0o077 != 0 {
		p.log.Warn().Str("data", c.Data).Stringer("mode", info.Mode().Perm()).Msg("others may read the store")
	}
	p.log.Info().Str("version", buildVersion()).Str("data", c.Data).Str("durability", c.Durability).Msg("ready")
}

// finishWork waits until there is nothing left to do, or nobody to do it, while nobody new is let in.
func (p *process) finishWork() {
	p.log.Info().Msg("ending once the jobs are done")
	p.doors.StopAccepting()
	client := p.engine.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})
	defer p.engine.Close(client)
	for p.busy(client) {
		select {
		case e := <-p.asked:
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
	for _, c := range p.doors.Counts() {
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

// stop answers what is committed, closes what is open, and ends in time even if a part of it hangs.
func (p *process) stop() error {
	p.log.Info().Msg("stopping")
	done := make(chan error, 1)
	go func() { done <- p.takeDown() }()
	select {
	case err := <-done:
		if err == nil {
			p.log.Info().Msg("stopped")
		}
		return err
	case <-time.After(stopFor):
		return fmt.Errorf("not stopped within %v; what was acknowledged is on disk", stopFor)
	}
}

// takeDown closes the parts in the reverse order of their making.
func (p *process) takeDown() error {
	p.live.end()
	p.timetable.stop()
	p.console.Stopping()
	p.doors.StopAccepting()
	p.lastWords()
	ctx, cancel := context.WithTimeout(context.Background(), drainFor)
	defer cancel()
	p.doors.Stop(ctx)
	err := p.engine.Shutdown()
	_ = p.http.Shutdown(ctx) // a scrape that is cut off comes again
	return err
}
