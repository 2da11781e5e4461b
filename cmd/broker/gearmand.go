package main

import (
	"io"
	"os"
	"syscall"

	"broker/cmd/broker/gearmand"
	"broker/frontends/eventloop"
)

// gearmanHTTPName is the front-end of gearmand's HTTP protocol in logs and metrics.
const gearmanHTTPName = "gearman-http"

// gearmandCommand runs the broker with gearmand's command line.
func gearmandCommand(args []string, stdout, stderr io.Writer) int {
	return gearmand.Main(args, stdout, stderr, buildVersion(), serveGearmand)
}

// serveGearmand runs the broker with gearmand's signals.
func serveGearmand(l gearmand.Launch) error {
	p := newProcess(&l.Config, l.Log, launch{
		verbosity: l.Verbosity, clientCertOptional: true, gearmanHTTP: l.HTTPAddress, onBound: l.OnBound,
		onReady: l.OnReady,
	})
	p.watchSignals(map[os.Signal]func(){
		syscall.SIGTERM: func() { p.requestShutdown(shutdown{}) },
		syscall.SIGINT:  func() { p.requestShutdown(shutdown{}) },
		syscall.SIGUSR1: func() { p.requestShutdown(shutdown{graceful: true}) },
		syscall.SIGHUP: func() {
			if err := l.ReopenLog(); err != nil {
				l.Log.Error().Err(err).Msg("log goes on in the old file")
			}
			_ = p.reload() // it has logged what is wrong
		},
	})
	return p.run()
}

// gearmanHTTPListeners are the listeners of gearmand's HTTP protocol. As in gearmand, they have no TLS.
func (p *process) gearmanHTTPListeners() []eventloop.Listener {
	if p.gearmanHTTP == "" {
		return nil
	}
	listeners := p.listenersOf(gearmanHTTPName, p.gearmanHTTP)
	for i := range listeners {
		p.setAllowList(&listeners[i], p.config.Gearman.Allow)
	}
	return listeners
}
