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

// snapshots is raft's list of snapshots. A snapshot of this node's own store only records the last durable entry; the
// store is copied when a follower needs a copy. A received snapshot is kept until it is installed.
type snapshots struct {
	n    *Node
	dir  string
	sent atomic.Uint64 // names the copies that are being sent
}

// Names of the files of a snapshot.
const (
	metaFile     = "meta.json"
	storeDir     = "store"           // a received copy, unpacked, until it is installed
	installedDir = "store.installed" // a received copy that was installed, until it is removed
	dataFile     = "data"            // a received copy as an older program kept it
)

// snapshotMeta is meta.json.
type snapshotMeta struct {
	raft.SnapshotMeta
	Position record.Position // of this node's own store; zero if it was received
}

// Create implements raft.SnapshotStore.
func (s *snapshots) Create(
	version raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	id := fmt.Sprintf("%020d-%d-%d", index, term, s.n.now().UnixNano())
	k := &sink{s: s, dir: filepath.Join(s.dir, id), meta: snapshotMeta{SnapshotMeta: raft.SnapshotMeta{
		Version: version, ID: id, Index: index, Term: term, Configuration: c, ConfigurationIndex: at,
	}}, ended: make(chan struct{})}
	if err := os.MkdirAll(filepath.Join(k.dir+unfinished, storeDir), 0o700); err != nil {
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

// received returns the folder of a received copy that is not installed yet.
func (s *snapshots) received(id string) (path string, there bool) {
	path = filepath.Join(s.dir, id, storeDir)
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
	if _, there := s.received(id); there {
		return &meta, io.NopCloser(bytes.NewReader(nil)), nil // fsm.Restore installs the folder
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
	head []byte // the beginning
	done bool

	unpacking *io.PipeWriter // of a received copy; nil: not yet, or a snapshot of this node's own store
	unpacked  chan error     // result of unpack

	received atomic.Uint64 // pieces
	own      atomic.Bool   // it is a snapshot of this node's own store, known from its first bytes
	ended    chan struct{} // closed when done
}

// watch gives up a copy when no more of it has arrived for a while. raft reads the copy in its main loop: if the leader
// has stopped or is cut off, this node would otherwise neither vote nor follow another leader.
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

// errCancelled is the result of a copy that raft has cancelled.
var errCancelled = errors.New("the copy was cancelled")

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
	if k.own.Load() {
		return len(p), nil
	}
	if k.unpacking == nil {
		k.unpack()
	}
	return k.unpacking.Write(p)
}

// unpack unpacks what is written from now on. So a copy takes its own space once.
func (k *sink) unpack() {
	r, w := io.Pipe()
	k.unpacking, k.unpacked = w, make(chan error, 1)
	go func() { // ends with the sink
		err := unpack(r, filepath.Join(k.dir+unfinished, storeDir))
		_ = r.CloseWithError(cmp.Or(err, io.ErrClosedPipe)) // the sender gets the error
		k.unpacked <- err
	}()
}

// endUnpack waits for the end of unpack. It returns an error if the copy is not complete.
func (k *sink) endUnpack(why error) error {
	if k.unpacking == nil {
		return nil
	}
	_ = k.unpacking.CloseWithError(why) // always nil
	return <-k.unpacked
}

// Cancel implements raft.SnapshotSink.
func (k *sink) Cancel() error {
	if k.done {
		return nil
	}
	k.end()
	_ = k.endUnpack(errCancelled) // that is its result
	return os.RemoveAll(k.dir + unfinished)
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
	err := k.endUnpack(nil)
	if err != nil {
		return err
	}
	if at, own := bytes.CutPrefix(k.head, []byte(localSnapshot)); own {
		if k.meta.Position, err = record.DecodePosition(at); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(work, storeDir)); err != nil {
			return err
		}
	} else if k.unpacking == nil {
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
			dir = filepath.Join(dir, installedDir)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}
