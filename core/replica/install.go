package replica

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"broker/core/internal/store"
)

// installMark is a file which says that raft/incoming is complete and replaces the store.
const installMark = "INSTALL"

// install replaces the store with a received copy. A crash at any point leaves either the old store, or a mark that makes
// the next start complete the replacement.
func (n *Node) install(from io.ReadCloser) error {
	defer func() { _ = from.Close() }() // only read
	n.log.Info("copy of the leader's store received, installing it")
	if err := n.unpackIncoming(from); err != nil {
		return err
	}
	n.stopStandby()
	if err := n.store.Load().Close(); err != nil {
		return err
	}
	if err := n.completeInstall(); err != nil {
		return err
	}
	if err := n.openStore(); err != nil {
		return err
	}
	n.startStandby()
	return nil
}

// unpackIncoming unpacks a received copy into raft/incoming, and then writes the mark.
func (n *Node) unpackIncoming(from io.Reader) error {
	incoming := n.dir(incomingDir)
	if err := errors.Join(os.RemoveAll(incoming), os.MkdirAll(incoming, 0o700)); err != nil {
		return err
	}
	if err := unpack(from, incoming); err != nil {
		return err
	}
	return writeFile(n.dir(installMark), nil)
}

// resumeInstall completes an installation that a crash has interrupted.
func (n *Node) resumeInstall() error {
	if err := n.completeInstall(); err != nil {
		return err
	}
	all, err := n.snaps.all()
	if err != nil || len(all) == 0 {
		return err
	}
	path, there := n.snaps.received(all[0].ID)
	if !there {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	if err := n.unpackIncoming(f); err != nil {
		return err
	}
	return n.completeInstall()
}

// completeInstall completes the installation if the mark exists. It can be repeated after a crash.
func (n *Node) completeInstall() error {
	if _, err := os.Stat(n.dir(installMark)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := store.Replace(n.o.Dir, n.dir(incomingDir)); err != nil {
		return fmt.Errorf("install the copy of the leader's store: %w", err)
	}
	received, err := filepath.Glob(filepath.Join(n.dir(snapshotsDir), "*", dataFile))
	if err != nil {
		return err
	}
	for _, path := range received { // installed now
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Remove(n.dir(installMark)), syncDir(n.dir("."))); err != nil {
		return err
	}
	return os.RemoveAll(n.dir(incomingDir))
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
