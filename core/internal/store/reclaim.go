package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Reclaim gives back the room that jobs have left which are gone. Pebble does so by itself when enough has been written
// since; removals are small, and a store that is drained on a full disk, where no new jobs come, would wait for ever. It
// merges piece by piece, so that little room is needed on the way. Commits go on meanwhile.
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
				return fmt.Errorf("merge tables: %w", err)
			}
		}
		return nil
	})
}
