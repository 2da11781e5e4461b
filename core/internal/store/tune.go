package store

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// Sizes that Options leaves to us.
const (
	defaultMemTableBytes = 16 << 20
	defaultCacheBytes    = 8 << 20
	minMemTableBytes     = 64 << 10
)

// maxMerges is how many merges of tables go on at once.
const maxMerges = 2

// pebbleFormat is the format of Pebble's own files: with offsets in the log, by which a hole in it is told from its torn
// end. Raising it makes stores unreadable to older brokers, and so raises formatVersion too.
const pebbleFormat = pebble.FormatTableFormatV6

// tuned is how Pebble is set up for a queue: keys come in order and most of them leave soon, in order again; values are
// small; each is read about once; nothing but the index in memory may grow with the number of jobs.
func (s *Store) tuned(o Options) *pebble.Options {
	p := &pebble.Options{
		FS:                 s.fs,
		FormatMajorVersion: pebbleFormat,
		ReadOnly:           o.ReadOnly,

		// Pebble takes the memory of its write buffers out of the cache: one that is filled and one that is flushed.
		CacheSize:    o.CacheBytes + 2*o.MemTableBytes,
		MemTableSize: uint64(o.MemTableBytes),
		// Bursts are taken up by more buffers and by deeper level 0 rather than by making commits wait.
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0CompactionFileThreshold:   64, // of those that nothing overlaps: they must move some day
		L0StopWritesThreshold:       32,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                512,
		MaxManifestFileSize:         16 << 20, // the start reads it twice
		CompactionConcurrencyRange:  func() (lower, upper int) { return 1, maxMerges },

		Logger:        pebbleLog{s},
		EventListener: s.listener(),
	}
	// Jobs come in the order of their keys, so that tables of the key space 'j' follow one another and need no merging
	// before jobs change or go. A table that reached into the next space, of which something is written again and again,
	// would overlap all later ones: they would be merged time after time.
	p.Experimental.SpanPolicyFunc = func(start []byte) (pebble.SpanPolicy, []byte, error) {
		return pebble.SpanPolicy{}, []byte{start[0] + 1}, nil // the end of the table at the latest
	}
	// Compacting because of reads pays off where the same keys are read again and again.
	p.Experimental.ReadSamplingMultiplier = -1
	p.Experimental.FileCacheShards = 1

	p.TargetFileSizes[0] = o.MemTableBytes / 2 // and twice as much from level to level
	for i := range p.Levels {
		p.Levels[i] = pebble.LevelOptions{
			BlockSize:   8 << 10,
			Compression: func() *sstable.CompressionProfile { return sstable.FastestCompression },
			// A filter answers for a table whether it has a key, but is one block of megabytes where a table holds millions
			// of small keys, and a few of those are more than the cache. Look-ups come in order instead, one after the
			// other in the same few blocks.
			FilterPolicy: pebble.NoFilterPolicy,
		}
	}
	return p
}

// mergeRoom is how much room on the disk Pebble is told of at the most, in bytes.
//
// Jobs in order overlap nothing: their tables can move down the levels as they are. But Pebble moves only one by one, and
// merges of level 0 take in whatever lies beside what they must merge: those of what is written again and again (marks)
// would rewrite all new jobs. It stops at 25 times the size of the tables to be made, and at a share of the room on the
// disk. Small tables would do, but a store whose jobs leave in random order would consist of thousands and make
// some at every step, until commits wait. So there is little room: what one merge may take in is less than two flushes.
func mergeRoom(memTableBytes int64) uint64 {
	most := uint64(memTableBytes + memTableBytes/2)
	return 2 * maxMerges * most // half of it is for all merges
}

// listener hears of what the fuse can't see: failures that come from reading, while tables are written and merged.
func (s *Store) listener() *pebble.EventListener {
	// A failed flush or merge ends with an event and then a background error, on one goroutine. A flush also says so when
	// it had nothing to write, since all keys were gone again; no background error follows on that.
	var ended atomic.Pointer[error]
	return &pebble.EventListener{
		FlushEnd:      func(i pebble.FlushInfo) { ended.Store(&i.Err) },
		CompactionEnd: func(i pebble.CompactionInfo) { ended.Store(&i.Err) },
		BackgroundError: func(err error) {
			if e := ended.Load(); e == nil || *e == nil || !errors.Is(err, *e) {
				s.warn(fmt.Sprintf("store in background: %v", err))
				return
			}
			_ = s.fuse.blow(s.damage("write tables", err)) // everybody reads it from the fuse
			runtime.Goexit()                               // Pebble would try again at once, for ever
		},
		DataCorruption: s.foundDamage,
		WriteStallBegin: func(i pebble.WriteStallBeginInfo) {
			s.stalls.Add(1)
			s.warn("store is behind, commits wait: " + i.Reason)
		},
	}
}

// pebbleLog takes Pebble's log. Its news is of no use to an operator.
type pebbleLog struct{ s *Store }

// Infof implements pebble.Logger.
func (pebbleLog) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (l pebbleLog) Errorf(format string, args ...any) { l.s.warn(fmt.Sprintf(format, args...)) }

// Fatalf implements pebble.Logger. It must not return; that ends the goroutine and not the process.
func (l pebbleLog) Fatalf(format string, args ...any) {
	_ = l.s.fuse.blow(fmt.Errorf(format, args...)) // everybody reads it from the fuse
	runtime.Goexit()
}
