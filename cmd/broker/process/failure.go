package process

import (
	"fmt"
	"time"

	"broker/core"
)

// exitOnFailure ends the program some time after the store has failed, so that a supervisor starts it again, possibly
// on another host.
type exitOnFailure struct {
	core.NopListener
	after time.Duration // zero: never
	exit  func(Shutdown)
}

// StoreFailed implements core.Listener.
func (x exitOnFailure) StoreFailed(err error) {
	if x.after == 0 {
		return
	}
	time.AfterFunc(x.after, func() {
		x.exit(Shutdown{Cause: fmt.Errorf("the store failed %v ago: %w", x.after, err)})
	})
}

// exitOnFailure returns the listener according to the settings. In a cluster the process does not exit, because other
// nodes take over.
func (p *Process) exitOnFailure() core.Listener {
	x := exitOnFailure{after: p.config.ExitAfterFailure, exit: p.RequestShutdown}
	if p.config.Cluster.Enabled() {
		x.after = 0
	}
	return x
}
