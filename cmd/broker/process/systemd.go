package process

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"broker/config"
)

// Activated holds the listening sockets from systemd, by front-end. They replace the addresses of its listen setting.
// systemd keeps them open during a restart, so clients wait instead of being refused.
type Activated map[string][]*os.File

// ActivatedSockets takes over the sockets that systemd passed to this process. FileDescriptorName in a socket unit is
// the name of the front-end.
func ActivatedSockets() (Activated, error) {
	sockets := make(Activated)
	names := config.ListenerNames()
	var errs []error
	for _, f := range activation.Files(true) {
		name := f.Name()
		if !slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("socket from systemd: FileDescriptorName is %q, not one of %s", name,
				strings.Join(names, ", ")))
			continue
		}
		sockets[name] = append(sockets[name], f)
	}
	return sockets, errors.Join(errs...)
}

// Override returns sources whose listen settings are the addresses of the sockets.
func (a Activated) Override(sources func() config.Sources) (func() config.Sources, error) {
	listen := make(map[string]string)
	for name, files := range a {
		addresses := make([]string, len(files))
		for i, f := range files {
			ln, err := net.FileListener(f)
			if err != nil {
				return nil, fmt.Errorf("socket from systemd for %s: %w", name, err)
			}
			addresses[i] = ln.Addr().String()
			if ln.Addr().Network() == "unix" {
				addresses[i] = "unix:" + addresses[i]
			}
			_ = ln.Close() // a duplicate
		}
		listen[name+".listen"] = strings.Join(addresses, ",")
	}
	return func() config.Sources {
		s := sources()
		maps.Copy(s.Flags, listen)
		return s
	}, nil
}

// notifyReady tells systemd that clients are served.
func (p *Process) notifyReady() {
	state := daemon.SdNotifyReady
	if p.Daemon {
		state += fmt.Sprintf("\nMAINPID=%d", os.Getpid()) // the process that systemd started is about to exit
	}
	p.notify(state)
}

// notify tells systemd the state of the service, if systemd waits for it.
func (p *Process) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		p.log.Warn().Err(err).Msg("systemd not notified")
	}
}
