package replica

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"broker/core/internal/store"
)

// installMark is a file which says that the newest received copy replaces the store.
const installMark = "INSTALL"

// install replaces the store with a received copy. A crash at any point leaves either the old store, or a mark that
// makes the next start complete the replacement.
func (n *Node) install() error {
	n.log.Info("copy of the leader's store received, installing it")
	n.stopStandby()
	if err := n.store.Load().Close(); err != nil {
		return err
	}
	if err := n.resumeInstall(); err != nil {
		return err
	}
	if err := n.openStore(); err != nil {
		return err
	}
	n.startStandby()
	return nil
}

// resumeInstall installs a received copy, also after a crash.
func (n *Node) resumeInstall() error {
	if err := n.completeInstall(); err != nil {
		return err
	}
	all, err := n.snaps.all()
	if err != nil || len(all) == 0 {
		return err
	}
	if err := n.unpackOlder(all[0].ID); err != nil {
		return err
	}
	if _, there := n.snaps.received(all[0].ID); !there {
		return nil
	}
	if err := writeFile(n.dir(installMark), nil); err != nil {
		return err
	}
	return n.completeInstall()
}

// unpackOlder unpacks a copy that an older program has received and not installed.
func (n *Node) unpackOlder(id string) error {
	data, to := filepath.Join(n.snaps.dir, id, dataFile), filepath.Join(n.snaps.dir, id, storeDir)
	f, err := os.Open(data)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	if err := errors.Join(os.RemoveAll(to+unfinished), os.MkdirAll(to+unfinished, 0o700)); err != nil {
		return err
	}
	if err := unpack(f, to+unfinished); err != nil {
		return err
	}
	return errors.Join(os.Rename(to+unfinished, to), os.Remove(data), syncDir(filepath.Dir(to)))
}

// completeInstall completes the installation if the mark exists. It can be repeated after a crash.
func (n *Node) completeInstall() error {
	if _, err := os.Stat(n.dir(installMark)); errors.Is(err, os.ErrNotExist) {
		return os.RemoveAll(n.dir(incomingDir)) // a part of a copy
	}
	all, err := n.snaps.all()
	if err != nil {
		return err
	}
	from, there := "", false
	if len(all) > 0 {
		from, there = n.snaps.received(all[0].ID)
	}
	if _, err := os.Stat(n.dir(incomingDir)); err == nil && !there {
		from, there = n.dir(incomingDir), true
	}
	if there { // otherwise a crash came after the installation
		if err := n.replaceStore(from); err != nil {
			return fmt.Errorf("install the copy of the leader's store: %w", err)
		}
	}
	if err := errors.Join(os.Remove(n.dir(installMark)), syncDir(n.dir("."))); err != nil {
		return err
	}
	err = os.RemoveAll(n.dir(installedDir))
	for _, s := range all {
		err = errors.Join(err, os.RemoveAll(filepath.Join(n.snaps.dir, s.ID, installedDir)))
	}
	return err
}

// replaceStore puts the files of a received copy in place of the store. Then it renames the folder of the copy, so that
// no later start takes a part of it for a copy.
func (n *Node) replaceStore(from string) error {
	if err := store.Replace(n.o.Dir, from); err != nil {
		return err
	}
	older, err := filepath.Glob(filepath.Join(n.snaps.dir, "*", dataFile))
	for _, path := range older {
		err = errors.Join(err, os.Remove(path))
	}
	to := filepath.Join(filepath.Dir(from), installedDir)
	return errors.Join(err, os.Rename(from, to), syncDir(filepath.Dir(from)))
}

// openStore opens the store of this member.
func (n *Node) openStore() error {
	s, err := store.Open(store.Options{Dir: n.o.Dir, Replicated: true, Warn: func(text string) {
		n.log.Warn("store warning", "detail", text)
	}})
	if err != nil {
		return err
	}
	n.store.Store(s)
	return nil
}
