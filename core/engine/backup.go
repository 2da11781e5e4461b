package engine

import (
	"context"
	"errors"
	"io"
	"time"

	"broker/core"
	"broker/core/clock"
	"broker/core/internal/batch"
	"broker/core/internal/index"
	"broker/core/internal/machine"
	"broker/core/internal/store"
)

// Errors of opening a store. For a damaged store, IsDamage is true.
var (
	ErrNoStore = store.ErrNoStore
	ErrInUse   = store.ErrInUse
)

// ErrNothingStored is returned for a broker that keeps its jobs in memory only.
var ErrNothingStored = errors.New("durability is none: there is no store to copy")

// Remedy is the advice for a damaged store in a folder.
func Remedy(dir string) string { return store.Remedy(dir) }

// IsDamage reports whether the store is damaged.
func IsDamage(err error) bool {
	var d *store.DamageError
	return errors.As(err, &d)
}

// Backup copies the store to a folder that must not exist, while the broker continues. The copy contains everything
// that was acknowledged before the call. A broker can be started on the copy.
func (e *Engine) Backup(dir string) error {
	if e.store == nil {
		return ErrNothingStored
	}
	e.Flush() // with durability relaxed, the newest changes are in memory only
	if err := e.store.Checkpoint(dir); err != nil || e.store.Cluster() == "" {
		return err
	}
	s, err := store.Open(store.Options{Dir: dir}) // the copy is a store of a single broker
	if err != nil {
		return err
	}
	return errors.Join(s.Leave(), s.Close())
}

// BackupStopped copies a store while no broker has it open.
func BackupStopped(data, dir string) error { return store.CopyStopped(store.Options{Dir: data}, dir) }

// Salvaged is what Salvage has copied.
type Salvaged = store.Salvaged

// Salvage copies everything that can be read from a damaged, stopped store to a folder that must not exist. progress is
// called from time to time with the number of keys read.
func Salvage(ctx context.Context, data, dir string, fsys store.FS, progress func(keys uint64)) (Salvaged, error) {
	return store.Salvage(ctx, store.Options{Dir: data, FS: fsys}, dir,
		func(name string, value []byte, lost *store.LostJobs) []byte {
			return batch.Mend(name, value, lost.Has, lost.Behind)
		}, progress)
}

// BackupTar is a copy of a store that is sent as a tar file.
type BackupTar = store.Tar

// OpenBackupTar opens a copy of a store in order to send it.
func OpenBackupTar(dir string) (*BackupTar, error) { return store.OpenTar(dir) }

// ReceiveBackup writes a copy sent as a BackupTar to a folder, which must not exist. The folder gets its name only when
// the copy is complete.
func ReceiveBackup(r io.Reader, dir string) error { return store.ReceiveCopy(r, dir) }

// Report lists the contents of a store and the problems found in it.
type Report struct {
	store.Report

	// Only from Inspect.
	Stats         *core.Stats
	Queues        []core.QueueInfo // by name
	Inconsistency error            // everything is readable, but inconsistent

	// Of the store of a node of a cluster: the id of the cluster, and the last entry that the store has.
	Cluster   string
	Applied   uint64
	AppliedAt core.Instant
}

// Sound reports whether everything was read and is consistent.
func (r *Report) Sound() bool { return len(r.Damage) == 0 && r.Inconsistency == nil }

// Inspect reads a stopped store completely and changes nothing. The error is only for failures to read it; problems of
// the store are in the Report. progress is called from time to time with the number of keys read.
func Inspect(ctx context.Context, data string, fsys store.FS, progress func(keys uint64)) (*Report, error) {
	s, err := store.Open(store.Options{Dir: data, FS: fsys, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	x, err := inspect(ctx, s, progress)
	return x, errors.Join(err, s.Close())
}

func inspect(ctx context.Context, s *store.Store, progress func(uint64)) (*Report, error) {
	r, err := s.Check(ctx, progress)
	if err != nil {
		return nil, err
	}
	x := &Report{Report: r, Cluster: s.Cluster()}
	if x.Cluster != "" {
		p := s.Position()
		x.Applied, x.AppliedAt = p.Index, p.At
	}
	now := clock.System{}.Now()
	o := machine.Options{Persist: true, DefaultLease: 30 * time.Minute, StartedAt: now}
	m, err := index.Build(ctx, s, o, clock.System{}.Now, nil)
	if err != nil {
		if len(x.Damage) == 0 {
			x.Damage = append(x.Damage, err.Error())
		}
		return x, nil // the readable part is incomplete
	}
	x.Inconsistency = m.Check()
	x.Stats = m.Stats()
	id := m.OpenClient(now, core.ClientOptions{Protocol: core.Internal})
	m.Apply(now, id, []core.Op{&core.ListQueues{}})
	for _, reply := range m.Take(id, nil) {
		x.Queues = append(x.Queues, reply.Queues...)
	}
	return x, nil
}
