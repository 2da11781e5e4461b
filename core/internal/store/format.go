package store

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"broker/core/internal/record"
	"broker/core/internal/store/integrity"
)

// Format returns the format that a program must know to read what is in the store, at least 1.
func (s *Store) Format() int {
	n := max(s.commit.format.Load(), s.commit.seen.Load())
	if n <= integrity.BaseFormat {
		return 1
	}
	return int(n)
}

// saw notes that something in the store needs a format. If an older broker wrote it, the next commit raises the
// format of the store.
func (c *committer) saw(format int) {
	if format > record.NewestFormat {
		return // a metadata entry that this program does not know
	}
	n := uint64(format)
	for before := c.seen.Load(); n > before && !c.seen.CompareAndSwap(before, n); {
		before = c.seen.Load()
	}
}

// setFormat adds the format of the store to pb.
func (c *committer) setFormat(pb *pebble.Batch, format uint64) error {
	return c.set(pb, []byte{spaceVersion}, binary.AppendUvarint(nil, format))
}

// writeFormat makes the format of the store durable.
func (c *committer) writeFormat(s *Store, format uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := s.apply(func(pb *pebble.Batch) error { return c.setFormat(pb, format) })
	if err == nil {
		c.format.Store(format)
	}
	return err
}

// formatCommitted writes FORMAT if the commit has raised the format of the store. The caller holds the committer's
// lock.
func (s *Store) formatCommitted() error {
	c := &s.commit
	if uint64(c.needs) <= c.format.Load() {
		return nil
	}
	c.format.Store(uint64(c.needs))
	return s.writeFormatFile()
}

func (s *Store) writeFormatFile() error {
	return s.latch.Run("write "+integrity.FormatFile, func() error {
		return integrity.WriteFormatFile(s.fs, s.dir, s.commit.format.Load())
	})
}
