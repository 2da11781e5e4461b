package store

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// Default sizes.
const (
	defaultMemTableBytes = 16 << 20
	defaultCacheBytes    = 8 << 20
	minMemTableBytes     = 64 << 10
)

// maxCompactions is the number of compactions that run at once.
const maxCompactions = 2

// pebbleFormat is the format of Pebble's own files. Its logs have offsets, which distinguish a hole from a torn tail.
// Older brokers cannot read files of a newer format, so raising it raises integrity.BaseFormat too.
const pebbleFormat = pebble.FormatTableFormatV6

// tuned configures Pebble for a queue. Keys arrive in order, and most are soon removed in the same order. Values are
// small, and each is read about once. Only the index in memory may grow with the number of jobs.
func (s *Store) tuned(o Options) *pebble.Options {
	p := &pebble.Options{
		FS:                 s.fs,
		FormatMajorVersion: pebbleFormat,
		ReadOnly:           o.ReadOnly,
		DisableWAL:         o.Replicated,

		DisableConsistencyCheck: o.emptied,

		// Pebble reserves the memory of its memtables in the cache: one being filled and one being flushed.
		CacheSize:    o.CacheBytes + 2*o.MemTableBytes,
		MemTableSize: uint64(o.MemTableBytes),
		// More memtables and a deeper level 0 absorb bursts, so that commits need not wait.
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0CompactionFileThreshold:   64, // counts files without overlaps: they must move down eventually
		L0StopWritesThreshold:       32,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                512,
		MaxManifestFileSize:         16 << 20, // read twice at start
		CompactionConcurrencyRange:  func() (lower, upper int) { return 1, maxCompactions },

		Logger:        pebbleLog{s},
		EventListener: s.listener(),
	}
	// Jobs arrive in key order, so tables of the key space 'j' follow each other and need no compaction until jobs
	// change or go. In the next key space, some keys are rewritten all the time. A table that reached into it would
	// overlap all later tables, and these would be compacted again and again.
	p.Experimental.SpanPolicyFunc = func(start []byte) (pebble.SpanPolicy, []byte, error) {
		return pebble.SpanPolicy{}, []byte{start[0] + 1}, nil // a table ends here at the latest
	}
	// Compactions triggered by reads pay off only if the same keys are read often.
	p.Experimental.ReadSamplingMultiplier = -1
	p.Experimental.FileCacheShards = 1

	p.TargetFileSizes[0] = o.MemTableBytes / 2 // doubled from level to level
	for i := range p.Levels {
		p.Levels[i] = pebble.LevelOptions{
			BlockSize:   8 << 10,
			Compression: func() *sstable.CompressionProfile { return sstable.FastestCompression },
			// The filter of a table with millions of small keys is one block of megabytes; a few of them exceed the
			// cache. Lookups come mostly in key order instead, in the same few blocks.
			FilterPolicy: pebble.NoFilterPolicy,
		}
	}
	return p
}

// compactionRoom is the maximum free disk space, in bytes, that is reported to Pebble.
//
// New jobs overlap no table, so their tables can move down the levels unchanged. But Pebble moves tables one by one,
// and extends a compaction of level 0 to tables next to those that it must compact: compactions of metadata entries,
// which are rewritten all the time, would rewrite all new jobs. The extension is limited to 25 times the size of an
// output table, and to a share of the free disk space. Smaller tables would limit the extension too. But if jobs are
// removed in random order, a store would consist of thousands of small tables and create more at every step, until
// commits stall. So little free space is reported to Pebble, which limits an extension to less than two flushes.
func compactionRoom(memTableBytes int64) uint64 {
	most := uint64(memTableBytes + memTableBytes/2)
	return 2 * maxCompactions * most // Pebble uses half of it for all compactions
}

// listener handles failures that the file system cannot see: of reads, during flushes and compactions.
func (s *Store) listener() *pebble.EventListener {
	// A failed flush or compaction ends with an event and then a background error, on one goroutine. A flush that had
	// nothing to write, because all keys were already removed, ends with an error too, but no background error
	// follows.
	var ended atomic.Pointer[error]
	return &pebble.EventListener{
		FlushEnd:      func(i pebble.FlushInfo) { ended.Store(&i.Err) },
		CompactionEnd: func(i pebble.CompactionInfo) { ended.Store(&i.Err) },
		BackgroundError: func(err error) {
			if e := ended.Load(); e == nil || *e == nil || !errors.Is(err, *e) {
				s.warn(fmt.Sprintf("store in background: %v", err))
				return
			}
			_ = s.latch.Trip(s.damage("write tables", err)) // callers get it from Err
			runtime.Goexit()                                // otherwise Pebble tries again at once, forever
		},
		DataCorruption: s.foundDamage,
		WriteStallBegin: func(i pebble.WriteStallBeginInfo) {
			s.stalls.Add(1)
			s.warn("store is behind, commits wait: " + i.Reason)
		},
	}
}

// foundDamage is called on the goroutine that reads a block with a wrong checksum, before the error is returned.
func (s *Store) foundDamage(i pebble.DataCorruptionInfo) {
	s.damaged.Store(&i.Path)
	damage := &DamageError{Path: i.Path, What: "compact tables", Err: i.Details}
	damage.Locate(s.disk, s.dir)
	s.latch.ReadFailed(damage)
}

// pebbleLog receives Pebble's log. Only errors are passed on, as operators need nothing else.
type pebbleLog struct{ s *Store }

// Infof implements pebble.Logger.
func (pebbleLog) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (l pebbleLog) Errorf(format string, args ...any) { l.s.warn(fmt.Sprintf(format, args...)) }

// Fatalf implements pebble.Logger. It must not return; it ends the goroutine instead of the process.
func (l pebbleLog) Fatalf(format string, args ...any) {
	_ = l.s.latch.Trip(fmt.Errorf(format, args...)) // callers get it from Err
	runtime.Goexit()
}
