package main

import (
	"io"
	"os"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"

	"broker/cmd/broker/beanstalkd"
	"broker/config"
)

// beanstalkdCommand runs the broker with beanstalkd's command line.
func beanstalkdCommand(args []string, stdout, stderr io.Writer) int {
	return beanstalkd.Main(args, stdout, stderr, buildVersion(),
		func(l beanstalkd.Launch) error { return serveBeanstalkd(l, stderr) })
}

// serveBeanstalkd runs the broker with beanstalkd's signals. Sockets of systemd replace the address of the command
// line.
func serveBeanstalkd(l beanstalkd.Launch, stderr io.Writer) error {
	p := newProcess(&l.Config, newLogger(l.Config.Log, stderr),
		launch{refuseOnly: true, onBound: l.OnBound, onReady: l.OnReady})
	if files := activation.Files(true); len(files) > 0 {
		p.sockets = activated{"beanstalk": files}
		sources, err := p.sockets.override(func() config.Sources { return config.Sources{Flags: map[string]string{}} })
		if err != nil {
			return err
		}
		p.config.Beanstalk.Listen = sources().Flags["beanstalk.listen"]
	}
	end := func() { p.requestShutdown(shutdown{}) }
	p.watchSignals(map[os.Signal]func(){
		syscall.SIGUSR1: func() { p.requestDrain(true) },
		syscall.SIGTERM: end,
		syscall.SIGINT:  end,
		syscall.SIGHUP:  end,
		syscall.SIGUSR2: end,
	})
	return p.run()
}
