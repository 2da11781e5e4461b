package main

import (
	"io"
	"os"
	"syscall"

	"broker/cmd/broker/gearmand"
	"broker/cmd/broker/process"
)

// asGearmand runs the broker with gearmand's command line.
var asGearmand = emulation{
	server: "gearmand", clients: "Gearman",
	run: func(args []string, stdout, stderr io.Writer) int {
		return gearmand.Main(args, stdout, stderr, buildVersion(), serveGearmand)
	},
	help: "--help",
	environment: [][2]string{
		{"GEARMAND_PORT", "the port, unless --port names another than 4730"},
		{
			"GEARMAND_CA_CERTIFICATE, GEARMAND_SERVER_PEM, GEARMAND_SERVER_KEY",
			"files for --ssl, in place of its options",
		},
		{"BROKER_DATA", "folder of the jobs"},
	},
	exits: [][2]string{{"0", "done"}, {"1", "failed, or the command line is wrong"}},
}

// serveGearmand runs the broker with gearmand's signals.
func serveGearmand(l gearmand.Launch) error {
	c, err := process.NewSettings(&l.Config)
	if err != nil {
		return err
	}
	p := newProcess(&c, l.Log, process.Launch{
		Daemon: gearmand.IsDaemon(), Verbosity: l.Verbosity, ClientCertOptional: true, GearmanHTTP: l.HTTPAddress,
		OnBound: l.OnBound, OnReady: l.OnReady,
	})
	p.WatchSignals(map[os.Signal]func(){
		syscall.SIGTERM: func() { p.RequestShutdown(process.Shutdown{}) },
		syscall.SIGINT:  func() { p.RequestShutdown(process.Shutdown{}) },
		syscall.SIGUSR1: func() { p.RequestShutdown(process.Shutdown{Graceful: true}) },
		syscall.SIGHUP: func() {
			if err := l.ReopenLog(); err != nil {
				l.Log.Error().Err(err).Msg("log goes on in the old file")
			}
			_ = p.Reload() // it has logged what is wrong
		},
	})
	return p.Run()
}
