package main

import (
	"io"
	"os"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"

	"broker/cmd/broker/beanstalkd"
	"broker/cmd/broker/process"
	"broker/config"
)

// asBeanstalkd runs the broker with beanstalkd's command line.
var asBeanstalkd = emulation{
	server: "beanstalkd", clients: "beanstalkd",
	run: func(args []string, stdout, stderr io.Writer) int {
		return beanstalkd.Main(args, stdout, stderr, buildVersion(),
			func(l beanstalkd.Launch) error { return serveBeanstalkd(l, stderr) })
	},
	help: "-h",
	exits: [][2]string{
		{"0", "done"},
		{"1", "failed, for any other reason"},
		{"5", "the command line is wrong"},
		{"10", "the folder of -b cannot be used"},
		{"33", "the user of -u is unknown"},
		{"111", "the port cannot be used"},
	},
}

// serveBeanstalkd runs the broker with beanstalkd's signals. Sockets of systemd replace the address of the command
// line.
func serveBeanstalkd(l beanstalkd.Launch, stderr io.Writer) error {
	launch := process.Launch{RefuseOnly: true, OnBound: l.OnBound, OnReady: l.OnReady}
	if files := activation.Files(true); len(files) > 0 {
		launch.Sockets = process.Activated{"beanstalk": files}
		sources, err := launch.Sockets.Override(func() config.Sources {
			return config.Sources{Flags: map[string]string{}}
		})
		if err != nil {
			return err
		}
		if l.Config.Beanstalk.Listen, err = config.ParseAddresses(sources().Flags["beanstalk.listen"]); err != nil {
			return err
		}
	}
	c, err := process.NewSettings(&l.Config)
	if err != nil {
		return err
	}
	p := newProcess(&c, process.NewLogger(l.Config.Log, stderr), launch)
	end := func() { p.RequestShutdown(process.Shutdown{}) }
	p.WatchSignals(map[os.Signal]func(){
		syscall.SIGUSR1: func() { p.RequestDrain(true) },
		syscall.SIGTERM: end,
		syscall.SIGINT:  end,
		syscall.SIGHUP:  end,
		syscall.SIGUSR2: end,
	})
	return p.Run()
}
