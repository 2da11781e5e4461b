package replica

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"broker/core/internal/store"
)

// Detach turns the store of a stopped member into the store of a single broker. It is for clusters whose majority is
// lost. It applies all entries of the member's log: the last ones may not have been committed, but no committed entry
// that this member had is left out. The log is kept beside the store. Detach returns the number of applied entries.
func Detach(dir string) (applied int, err error) {
	n := &Node{o: Options{Dir: dir}.withDefaults()}
	n.log = newLogger(n.o.Log)
	n.snaps = &snapshots{n: n, dir: n.dir(snapshotsDir)}
	n.fsm = &fsm{n: n}
	n.lease.clock = n.o.Clock
	if err := n.isMember(); err != nil {
		return 0, err
	}
	lock, err := store.LockFolder(n.dir("."))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := n.resumeInstall(); err != nil {
		return 0, err
	}
	if err := n.openStore(); err != nil {
		return 0, err
	}
	s := n.store.Load()
	if _, err := os.Stat(n.dir(nodeFile)); err != nil && s.Cluster() == "" {
		return 0, errors.Join(n.notAMember("its store is in no cluster"), s.Close())
	}
	applied, err = n.applyLog()
	if err == nil {
		err = s.Leave()
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return applied, err
	}
	for i := 1; ; i++ { // the old log is kept for inspection
		old := filepath.Join(dir, fmt.Sprintf("%s.detached-%d", raftDir, i))
		if _, err := os.Stat(old); errors.Is(err, os.ErrNotExist) {
			return applied, errors.Join(os.Rename(filepath.Join(dir, raftDir), old), syncDir(dir))
		}
	}
}

// isMember returns an error if the folder cannot be that of a member.
func (n *Node) isMember() error {
	folder, err := os.Stat(n.o.Dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return n.notAMember("there is no such folder")
	case err != nil:
		return err
	case !folder.IsDir():
		return n.notAMember("it is not a folder")
	}
	if _, err = os.Stat(n.snaps.dir); errors.Is(err, os.ErrNotExist) {
		return n.notAMember("it has no folder " + filepath.Join(raftDir, snapshotsDir))
	}
	return err
}

func (n *Node) notAMember(why string) error {
	return fmt.Errorf("%s is not the data folder of a node of a cluster: %s", n.o.Dir, why)
}

// applyLog applies the entries of the log that the store does not have yet.
func (n *Node) applyLog() (applied int, err error) {
	if _, err := os.Stat(n.dir(logDir)); errors.Is(err, os.ErrNotExist) {
		return 0, nil // it has never received data
	}
	l, err := store.OpenLog(store.Options{Dir: n.dir(logDir)})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	logs := &logStore{log: l}
	first, last := l.Bounds()
	for at := first; at != 0 && at <= last; at++ {
		var e raft.Log
		if err := logs.GetLog(at, &e); err != nil {
			return applied, fmt.Errorf("entry %d of the log: %w", at, err)
		}
		if e.Type != raft.LogCommand {
			continue
		}
		before := n.store.Load().Position().Index
		if err, failed := n.fsm.Apply(&e).(error); failed && n.fsm.broken != nil {
			return applied, err
		}
		if n.store.Load().Position().Index > before {
			applied++
		}
	}
	return applied, nil
}
