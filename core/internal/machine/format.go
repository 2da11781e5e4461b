package machine

import (
	"cmp"
	"fmt"

	"broker/core"
	"broker/core/internal/limit"
	"broker/core/internal/policy"
	"broker/core/internal/record"
	"broker/core/internal/table"
)

// While the nodes of a cluster are upgraded one after another, the entries have a format that all of them read:
// Options.Format, which only rises. An operation whose data that format cannot carry is refused, since the next
// leader would not know the data. What no client asks for is simply not stored before the format can carry it:
//
//   - values that a submission chose itself: no policy replaces values yet, and a later one treats such a job like
//     any other
//   - counts of releases, timeouts, burials and kicks: jobs that were submitted earlier never have them
//   - moves by a policy of the configuration file: the job is dead in its own queue
//   - used rates: after a restart, a rate starts with its whole burst
//   - ends of extended leases: see leaseEnd
//   - versions of workers: after a restart, a job that failed earlier has none

// Formats with which the features that no client asks for begin.
const (
	ownFormat      = 4
	ratesFormat    = 4
	movesFormat    = 4
	leaseEndFormat = 5
	versionFormat  = 5
)

// stores reports whether the entries from now on have at least this format.
func (m *Machine) stores(format int) bool { return m.opts.Format == nil || m.opts.Format() >= format }

// formatRefusal returns why an operation is refused as long as older nodes are members, or nil. It removes from jobs
// what no client asks for and cannot be stored yet.
func (m *Machine) formatRefusal(op core.Op) error {
	if m.opts.Format == nil {
		return nil
	}
	format := m.opts.Format()
	if format >= record.NewestFormat {
		return nil
	}
	if f := lackedBy(format, op); f != nil {
		const text = "%w: %s: not before all nodes of the cluster run a version that stores this (format %d, now %d)"
		return fmt.Errorf(text, core.ErrInvalid, f.Name, f.Format, format)
	}
	return nil
}

// lackedBy returns a feature that an operation needs and a format lacks; nil: there is none.
func lackedBy(format int, op core.Op) *record.Feature {
	switch op := op.(type) {
	case *core.Submit:
		f := lackedByJob(format, op.Job)
		if f == nil && op.Window != 0 {
			f = record.LackedByMeta(format, table.WindowPrefix)
		}
		return cmp.Or(f, lackedByEntries(format, op.Meta))
	case *core.OpenBatch:
		return cmp.Or(lackedByJob(format, op.Complete), lackedByJob(format, op.Success))
	case *core.PutSchedule:
		return lackedByJob(format, op.Schedule.Job)
	case *core.Update:
		return lackedByChange(format, &op.Set)
	case *core.Move:
		return lackedByChange(format, &op.Set)
	case *core.Resubmit:
		return record.LackedByJob(format, &core.Job{Rare: &core.RareFields{RerunOf: 1}})
	case *core.Cancel:
		if op.Running == core.RunningSignal {
			return record.LackedByStatus(format, &record.Status{StopAfter: 1})
		}
	case *core.AppendLog:
		return record.LackedByDocument(format, core.LogsPrefix)
	case *core.WriteMeta:
		return lackedByEntries(format, op.Entries)
	case *core.MoveSpent:
		if op.Rule != (core.SpentRule{}) {
			return record.LackedByMeta(format, queueMetaPrefix)
		}
	default:
		return lackedByRule(format, op)
	}
	return nil
}

// lackedByRule is lackedBy for limits and policies. Those of the configuration file are not stored, and removals have
// every format.
func lackedByRule(format int, op core.Op) *record.Feature {
	switch op := op.(type) {
	case *core.PutLimit:
		switch {
		case op.Limit.IsShared():
			return record.LackedByMeta(format, limit.SharedPrefix)
		case !op.Limit.FromConfig:
			return record.LackedByMeta(format, limit.RulesPrefix)
		}
	case *core.ShareQueue:
		if !op.Sharing.FromConfig && op.Sharing.Key.Kind != core.KeyNone {
			return record.LackedByMeta(format, limit.RulesPrefix)
		}
	case *core.PutPolicy:
		if !op.FromConfig && op.Set.Has != 0 {
			return record.LackedByMeta(format, policy.Prefix)
		}
	}
	return nil
}

// lackedByJob is lackedBy for a job that a client submits, or nil. An ephemeral job may become a stored one later.
func lackedByJob(format int, j *core.Job) *record.Feature {
	if j == nil {
		return nil
	}
	if format < ownFormat {
		j.Own, j.Tallies = 0, 0
	}
	return record.LackedByJob(format, j)
}

func lackedByChange(format int, set *core.JobChange) *record.Feature {
	if set.Priority == nil {
		return nil
	}
	return record.LackedByJob(format, &core.Job{Priority: *set.Priority})
}

func lackedByEntries(format int, entries []core.MetaEntry) *record.Feature {
	for i := range entries {
		if entries[i].Value != nil {
			if f := record.LackedByMeta(format, entries[i].Name); f != nil {
				return f
			}
		}
	}
	return nil
}
