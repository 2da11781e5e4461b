package table

import "broker/core"

// versionIndex has the versions of the workers' programs that leased jobs last (core.Lease.Version). Jobs whose worker
// names none are not in it, and cost nothing.
type versionIndex struct {
	Names NameTable
	of    map[uint32]uint32 // number of the name, by job
}

// SetVersion records the version of the worker that leases a job; empty: it names none. The job is not listed as
// retrying or dead.
func (t *Table) SetVersion(h uint32, version string) {
	v := &t.Versions
	old := v.of[h]
	if version == v.Names.NameOf(old) {
		return
	}
	if old != 0 {
		v.Names.release(old)
		delete(v.of, h)
	}
	if version != "" {
		v.of[h] = v.Names.acquireCopy(version)
	}
}

// VersionNumber is the number of the version of a job's last worker; zero: unknown.
func (t *Table) VersionNumber(h uint32) uint32 { return t.Versions.of[h] }

// VersionOf is core.JobInfo.Version.
func (t *Table) VersionOf(h uint32, e *Entry) string {
	switch e.State {
	case core.Leased, core.Retrying, core.Dead:
		return t.LastVersion(h)
	case core.Gone, core.Scheduled, core.Blocked, core.Ready, core.Done:
	}
	return ""
}

// LastVersion is the version of the worker that leased a job last, whatever the job's state.
func (t *Table) LastVersion(h uint32) string { return t.Versions.Names.NameOf(t.VersionNumber(h)) }
