package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Reclaim frees the disk space of jobs that are gone. Pebble does so on its own after enough new writes. But deletes
// are small, and with a full disk no new jobs are accepted, so a store that is being drained would wait forever.
// Reclaim compacts piece by piece, so it needs little space itself. Commits continue.
func (s *Store) Reclaim(ctx context.Context) error {
	if !s.use.enter() {
		return ErrClosed
	}
	defer s.use.leave()
	return s.latch.Run("reclaim room", func() error {
		if err := s.db.Flush(); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
		for _, space := range []byte{spaceBody, spaceJob} {
			err := s.db.Compact(ctx, []byte{space}, []byte{space + 1}, true)
			if err != nil && ctx.Err() == nil && !errors.Is(err, pebble.ErrCancelledCompaction) {
				return fmt.Errorf("compact tables: %w", err)
			}
		}
		return nil
	})
}
