package beanstalkd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"broker/cmd/broker/cli"
	"broker/config"
)

// replacedVersion is the version of beanstalkd that this command replaces.
const replacedVersion = "1.12"

// The exit codes of beanstalkd.
const (
	exitUsage  = 5
	exitData   = 10
	exitUser   = 33
	exitListen = 111
)

// Launch holds the parameters of the broker from a command line.
type Launch struct {
	Config  config.Config
	OnBound func() error // called once the addresses are bound, before anything else is touched
	OnReady func() error // called once clients are served
}

// errUser means that the process cannot switch to the user of -u.
var errUser = errors.New("cannot switch to the user")

// Main runs the broker with beanstalkd's command line and returns the exit code. run serves until a shutdown is
// requested.
func Main(args []string, stdout, stderr io.Writer, version string, run func(Launch) error) int {
	o, err := parse(args)
	switch {
	case err != nil:
		cli.Say(stderr, "beanstalkd: %v\n\n", err)
		usage(stderr)
		return exitUsage
	case o.help:
		usage(stdout)
		return cli.ExitOK
	case o.version:
		cli.Say(stdout, "beanstalkd %s - broker %s\n", replacedVersion, version)
		return cli.ExitOK
	}
	for _, text := range o.warn {
		cli.Say(stderr, "beanstalkd: warning: %s\n", text)
	}
	if o.user != "" {
		if _, err := findUser(o.user); err != nil {
			cli.Say(stderr, "beanstalkd: %v\n", err)
			return exitUser
		}
	}
	if info, err := os.Stat(o.data); o.data != "" && (err != nil || !info.IsDir()) {
		cli.Say(stderr, "beanstalkd: %s is not a folder\n", o.data)
		return exitData
	}
	if log := foreignBinlog(o.data); log != "" {
		cli.Say(stderr, "beanstalkd: %s\n", fmt.Sprintf(binlogRefusal, log, o.data))
		return exitData
	}
	c, err := o.settings()
	failed := cli.ExitFailed // the exit code of an error
	if err == nil {
		failed = exitListen
		err = run(Launch{
			Config: c,
			OnBound: func() error {
				if failed = cli.ExitFailed; o.data != "" {
					failed = exitData
				}
				return o.dropPrivileges()
			},
			OnReady: func() error {
				failed = cli.ExitFailed
				return nil
			},
		})
	}
	if err == nil {
		return cli.ExitOK
	}
	cli.Say(stderr, "beanstalkd: %v\n", err)
	if errors.Is(err, errUser) {
		return exitUser
	}
	return failed
}

// binlogRefusal explains why the broker does not start on the binlog of a real beanstalkd. Its arguments are the file
// and the folder.
const binlogRefusal = `%s is the binlog of a beanstalkd, which this program cannot read.
To move its jobs, start that beanstalkd on another port (beanstalkd -l 127.0.0.1 -p 11301 -b %s),
and this program with another folder for -b and BROKER_HTTP_LISTEN=127.0.0.1:7420 in its environment. Then run
  broker import --from beanstalkd 127.0.0.1:11301
If its jobs are not needed, remove the binlog files`

// foreignBinlog is a binlog file of a real beanstalkd in a folder that has no store of the broker; empty: there is
// none.
func foreignBinlog(dir string) string {
	if dir == "" {
		return ""
	}
	if _, err := os.Stat(filepath.Join(dir, "FORMAT")); err == nil {
		return ""
	}
	logs, _ := filepath.Glob(filepath.Join(dir, "binlog.[0-9]*")) // the pattern is valid
	if len(logs) == 0 {
		return ""
	}
	return logs[0]
}

// settings translates the options. Other settings can be set in the environment.
func (o *options) settings() (config.Config, error) {
	listen := o.listen
	if !strings.HasPrefix(listen, "unix:") {
		listen = net.JoinHostPort(listen, o.port)
	}
	flags := map[string]string{
		"beanstalk.listen":   listen,
		"beanstalk.max_body": strconv.FormatUint(o.maxBody, 10),
		"log.level":          [...]string{"error", "info", "debug"}[min(o.verbose, 2)],
		"durability":         "none",
	}
	if o.data != "" {
		data, err := filepath.Abs(o.data)
		if err != nil {
			return config.Config{}, err
		}
		flags["data"] = data
		switch {
		case o.syncMS == 0:
			flags["durability"] = "sync"
		case o.syncMS > 0:
			flags["durability"], flags["sync_interval"] = "relaxed", fmt.Sprintf("%dms", o.syncMS)
		}
	}
	return config.Load(config.Sources{Env: append(config.ListenOnly("beanstalk"), os.Environ()...), Flags: flags})
}

func findUser(name string) (*user.User, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("%w: no user %s", errUser, name)
	}
	return u, nil
}

// dropPrivileges switches to the user of -u, once the port is bound.
func (o *options) dropPrivileges() error {
	if o.user == "" {
		return nil
	}
	u, err := findUser(o.user)
	if err != nil {
		return err
	}
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	if err := errors.Join(errUID, errGID); err != nil {
		return fmt.Errorf("%w: %w", errUser, err)
	}
	if err := cmp.Or(syscall.Setgroups([]int{gid}), syscall.Setgid(gid), syscall.Setuid(uid)); err != nil {
		return fmt.Errorf("%w: %w", errUser, err)
	}
	return nil
}

func usage(w io.Writer) {
	cli.Say(w, `Use: beanstalkd [OPTIONS]

Options:
 -b DIR   folder of the jobs, which must exist; without it they are in memory only
 -f MS    sync at most once every MS milliseconds (default 50; 0: before each reply)
 -F       never sync
 -l ADDR  address to listen on (default 0.0.0.0), or unix:/path
 -p PORT  port to listen on (default 11300)
 -u USER  become this user
 -z BYTES largest job (default 65535, at most 1073741824)
 -s BYTES accepted; the store chooses the size of its files
 -c, -n   accepted without an effect
 -v       show the version
 -V       log more; may be repeated
 -h       show this help

SIGUSR1 refuses new jobs until a restart; SIGTERM, SIGINT, SIGHUP and SIGUSR2 end the server.
`)
}
