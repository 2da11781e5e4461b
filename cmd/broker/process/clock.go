package process

import (
	"net"

	"broker/core"
	"broker/core/clock"
)

// systemClock is the clock of this machine.
func (p *Process) systemClock() clock.Monotonic {
	if p.Clock != nil {
		return p.Clock
	}
	return clock.System{}
}

// clock is the clock of the broker. A hostile broker has its own clock.
func (p *Process) clock() clock.Monotonic {
	if p.Faults != nil {
		return p.Faults.Clock
	}
	return p.systemClock()
}

// disturbed wraps a listener so that its connections meet the faults of broker test.
func (p *Process) disturbed(protocol core.Protocol, l net.Listener) net.Listener {
	if p.Faults == nil {
		return l
	}
	return p.Faults.Conns.Listen(protocol, l)
}
