package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"broker/core"
	"broker/core/engine"
	"broker/operate/service"
)

// Backup implements service.Store. It copies the store while it is in use.
func (t *term) Backup(dir string) error {
	err := t.engine.Backup(dir)
	if errors.Is(err, os.ErrExist) {
		return &service.Error{Code: service.CodeExists, Field: "dir", Detail: err.Error()}
	}
	return storeError(err)
}

// StreamFolder is the folder for the copy of a store that is sent to a client. It is next to the store, where the
// broker can write and files can be hard links.
func StreamFolder(data string) string {
	return filepath.Join(filepath.Dir(data), "."+filepath.Base(data)+".backup-stream")
}

// RemoveStream removes the rest of such a copy.
func RemoveStream(dir string) error {
	return errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+".unfinished"))
}

// sentBackup is a copy of the store that is being sent.
type sentBackup struct {
	*engine.BackupTar

	dir  string
	done func()
}

// Size implements service.BackupStream.
func (b *sentBackup) Size() int64 { return b.BackupTar.Size }

// Close implements service.BackupStream.
func (b *sentBackup) Close() error {
	defer b.done()
	return RemoveStream(b.dir)
}

// SendBackup implements service.Store. It copies the store while it is in use, to be sent to a client. One copy is sent
// at a time.
func (t *term) SendBackup() (service.BackupStream, error) {
	if !t.sending.TryLock() {
		return nil, &service.Error{
			Code: service.CodeState, Detail: "another backup is being sent; wait until it is complete",
		}
	}
	tar, dir, err := t.copyToSend()
	if err != nil {
		t.sending.Unlock()
		return nil, storeError(err)
	}
	return &sentBackup{tar, dir, t.sending.Unlock}, nil
}

// copyToSend makes a copy beside the store or, if that folder cannot be written, among the temporary files.
func (t *term) copyToSend() (tar *engine.BackupTar, dir string, err error) {
	dir = StreamFolder(t.config.Data)
	if err = RemoveStream(dir); err == nil {
		err = t.engine.Backup(dir)
	}
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) {
		parent, tempErr := os.MkdirTemp("", "broker-backup-")
		if tempErr != nil {
			return nil, "", errors.Join(err, tempErr)
		}
		dir = filepath.Join(parent, "store")
		err = t.engine.Backup(dir)
	}
	if err != nil {
		return nil, "", err
	}
	tar, err = engine.OpenBackupTar(dir)
	return tar, dir, err
}

// storeError is the reply to clients if there is no store.
func storeError(err error) error {
	if errors.Is(err, engine.ErrNothingStored) {
		return &service.Error{Code: service.CodeUnsupported, Detail: err.Error()}
	}
	return err
}

// BackupProgress implements service.Store.
func (t *term) BackupProgress(dir string) float64 {
	s, err := t.engine.Storage()
	if err != nil || s.DiskBytes == 0 {
		return 0
	}
	return min(float64(t.engine.BackupCopied(dir))/float64(s.DiskBytes), 1)
}

// CheckStore implements service.Store. The broker goes on running.
func (t *term) CheckStore(ctx context.Context, progress func(part float64)) (*service.CheckReport, error) {
	r, err := t.engine.CheckStore(ctx, progress)
	if err != nil {
		return nil, storeError(err)
	}
	return &service.CheckReport{Damage: r.Damage, Orphans: r.Orphans, More: r.More}, nil
}

// Storage implements service.Store.
func (t *term) Storage() (core.Storage, error) {
	s, err := t.engine.Storage()
	s.Archive = t.ArchiveStatus()
	return s, storeError(err)
}
