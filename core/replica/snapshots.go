package replica

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"broker/core/internal/record"
)

// keptSnapshots is how many snapshots are kept.
const keptSnapshots = 2

// snapshots is raft's list of snapshots. A snapshot of this node's own store only records the last durable entry; the store
// is copied when a follower needs a copy. A received snapshot is kept until it is installed.
type snapshots struct {
	n    *Node
	dir  string
	sent atomic.Uint64 // names the copies that are being sent
}

// Names of the files of a snapshot.
const (
	metaFile = "meta.json"
	dataFile = "data"
)

// snapshotMeta is meta.json.
type snapshotMeta struct {
	raft.SnapshotMeta
	Position record.Position // of this node's own store; zero if it was received
}

// Create implements raft.SnapshotStore.
func (s *snapshots) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	id := fmt.Sprintf("%020d-%d-%d", index, term, s.n.now().UnixNano())
	k := &sink{s: s, dir: filepath.Join(s.dir, id), meta: snapshotMeta{SnapshotMeta: raft.SnapshotMeta{
		Version: version, ID: id, Index: index, Term: term, Configuration: c, ConfigurationIndex: at,
	}}, ended: make(chan struct{})}
	if err := os.MkdirAll(k.dir+unfinished, 0o700); err != nil {
		return nil, err
	}
	var err error
	if k.file, err = os.OpenFile(filepath.Join(k.dir+unfinished, dataFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	s.n.running.Go(func() { k.watch(callTimeout) }) // ends with the sink
	return k, nil
}

// unfinished marks a snapshot that is being written or removed.
const unfinished = ".unfinished"

// List implements raft.SnapshotStore.
func (s *snapshots) List() ([]*raft.SnapshotMeta, error) {
	all, err := s.all()
	metas := make([]*raft.SnapshotMeta, len(all))
	for i := range all {
		metas[i] = &all[i].SnapshotMeta
	}
	return metas, err
}

// all lists the snapshots, newest first.
func (s *snapshots) all() ([]snapshotMeta, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var all []snapshotMeta
	for _, e := range entries {
		if filepath.Ext(e.Name()) == unfinished {
			continue
		}
		text, err := os.ReadFile(filepath.Join(s.dir, e.Name(), metaFile))
		if errors.Is(err, os.ErrNotExist) {
			continue // an older program was interrupted while it removed this snapshot
		}
		var m snapshotMeta
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil {
			return nil, fmt.Errorf("snapshot %s: %w", e.Name(), err)
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b snapshotMeta) int { return cmp.Compare(b.ID, a.ID) })
	return all, nil
}

// received returns the path of a received snapshot that is not installed yet.
func (s *snapshots) received(id string) (path string, there bool) {
	path = filepath.Join(s.dir, id, dataFile)
	_, err := os.Stat(path)
	return path, err == nil
}

// Open implements raft.SnapshotStore.
func (s *snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	all, err := s.all()
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(all, func(m snapshotMeta) bool { return m.ID == id })
	if i < 0 {
		return nil, nil, fmt.Errorf("snapshot %s: %w", id, os.ErrNotExist)
	}
	meta := all[i].SnapshotMeta
	if path, there := s.received(id); there {
		f, err := os.Open(path)
		if err != nil {
			return nil, nil, err
		}
		info, err := f.Stat()
		if err != nil {
			return nil, nil, errors.Join(err, f.Close())
		}
		meta.Size = info.Size()
		return &meta, f, nil
	}
	held := s.n.retain.hold(meta.Index, s.n.lease.now)
	held.ReadCloser, meta.Size, err = s.copyStore()
	if err != nil {
		held.end()
		return nil, nil, fmt.Errorf("copy the store for a follower: %w", err)
	}
	return &meta, held, nil
}

// copyStore copies the current store, which may be ahead of the snapshot: a follower skips entries that it has.
func (s *snapshots) copyStore() (io.ReadCloser, int64, error) {
	dir := filepath.Join(s.n.dir(outgoingDir), fmt.Sprint(s.sent.Add(1)))
	if err := s.n.store.Load().Checkpoint(dir); err != nil {
		return nil, 0, err
	}
	files, size, err := packFiles(dir)
	if err != nil {
		return nil, 0, errors.Join(err, os.RemoveAll(dir))
	}
	r, w := io.Pipe()
	s.n.log.Info("copy of the store is sent to a follower", "bytes", size)
	s.n.running.Go(func() { // ends when everything is read or r is closed
		if s.n.o.beforeCopy != nil {
			s.n.o.beforeCopy()
		}
		_ = w.CloseWithError(pack(w, dir, files)) // always nil
		_ = os.RemoveAll(dir)                     // the next start removes any remains
	})
	return r, size, nil
}

// sink receives a snapshot.
type sink struct {
	s    *snapshots
	dir  string
	meta snapshotMeta
	file *os.File
	head []byte // the beginning
	done bool

	received atomic.Uint64 // pieces
	own      atomic.Bool   // it is a snapshot of this node's own store, known from its first bytes
	ended    chan struct{} // closed when done
}

// watch gives up a copy when no more of it has arrived for a while. raft reads the copy in its main loop: if the leader has
// stopped or is cut off, this node would otherwise neither vote nor follow another leader.
func (k *sink) watch(patience time.Duration) {
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for before := k.received.Load(); ; {
		select {
		case <-k.ended:
			return
		case <-tick.C:
		}
		now := k.received.Load()
		if now == before && !k.own.Load() {
			k.s.n.log.Warn("the leader stopped sending the copy of its store; this node gives the copy up")
			k.s.n.stream.closeAccepted()
		}
		before = now
	}
}

// end marks the copy as finished.
func (k *sink) end() {
	k.done = true
	close(k.ended)
}

// ID implements raft.SnapshotSink.
func (k *sink) ID() string { return k.meta.ID }

// Write implements io.Writer.
func (k *sink) Write(p []byte) (int, error) {
	k.received.Add(1)
	if room := 64 - len(k.head); room > 0 {
		k.head = append(k.head, p[:min(room, len(p))]...)
		k.own.Store(bytes.HasPrefix(k.head, []byte(localSnapshot)))
	}
	return k.file.Write(p)
}

// Cancel implements raft.SnapshotSink.
func (k *sink) Cancel() error {
	if k.done {
		return nil
	}
	k.end()
	return errors.Join(k.file.Close(), os.RemoveAll(k.dir+unfinished))
}

// Close implements io.Closer: it makes the snapshot durable.
func (k *sink) Close() error {
	if k.done {
		return nil
	}
	k.end()
	if err := k.finish(); err != nil {
		return errors.Join(err, os.RemoveAll(k.dir+unfinished))
	}
	return k.s.reap()
}

func (k *sink) finish() error {
	work := k.dir + unfinished
	err := k.file.Sync()
	if err = errors.Join(err, k.file.Close()); err != nil {
		return err
	}
	if at, own := bytes.CutPrefix(k.head, []byte(localSnapshot)); own {
		if k.meta.Position, err = record.DecodePosition(at); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(work, dataFile)); err != nil {
			return err
		}
	} else if !bytes.HasPrefix(k.head, []byte(packMagic)) {
		return errPack
	}
	text, err := json.Marshal(k.meta)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(work, metaFile), text); err != nil {
		return err
	}
	if err := os.Rename(work, k.dir); err != nil {
		return err
	}
	return syncDir(k.s.dir)
}

// reap removes all but the newest snapshots. A snapshot is renamed before its files are removed, so a crash leaves a
// folder that is not in the list.
func (s *snapshots) reap() error {
	all, err := s.all()
	if err != nil {
		return err
	}
	for i := keptSnapshots; i < len(all); i++ {
		dir := filepath.Join(s.dir, all[i].ID)
		if err := os.Rename(dir, dir+unfinished); err != nil {
			return err
		}
		if err := os.RemoveAll(dir + unfinished); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what a crash has left of snapshots that were being received or removed. Nothing may use the snapshots
// yet.
func (s *snapshots) sweep() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		dir := filepath.Join(s.dir, e.Name())
		_, err := os.Stat(filepath.Join(dir, metaFile))
		if filepath.Ext(e.Name()) != unfinished && !errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}
