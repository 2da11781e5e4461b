package machine

import (
	"fmt"

	"broker/core/internal/batch"
	"broker/core/internal/limit"
	"broker/core/internal/schedule"
	"broker/core/internal/table"
	"broker/core/internal/telemetry"
)

// Parts are what a machine consists of, for comparisons in tests; see machinetest.
type Parts struct {
	Table     *table.Table
	Limits    *limit.Rules
	Batches   *batch.Batches
	Schedules *schedule.Schedules
	Meters    *telemetry.Meters
	Queues    []*limit.Queue // by number; nil: none
	Settings  []string       // of the queues: what only the machine knows about them
}

// PartsOf returns the parts of a machine. It is not a method, so that the linker leaves it out of the program.
func PartsOf(m *Machine) Parts {
	p := Parts{Table: m.table, Limits: m.limits, Batches: m.batches, Schedules: m.schedules, Meters: m.meters}
	for _, q := range m.queues {
		if q == nil {
			p.Queues, p.Settings = append(p.Queues, nil), append(p.Settings, "")
			continue
		}
		p.Queues = append(p.Queues, &q.Queue)
		p.Settings = append(p.Settings, fmt.Sprint(
			q.paused, q.pausedFor, m.table.Timers.At(q.pauseTimer), q.lifetime, q.stored,
			q.idleTimer != 0,
		))
	}
	return p
}
