package core

import "time"

// Storage is the state of the store. Counts are since the process started.
type Storage struct {
	DiskBytes uint64 // of all files, including files that are about to be removed
	LiveBytes uint64 // of the tables in use
	LogBytes  uint64 // of the write-ahead log, which a restart replays
	FreeBytes uint64 // on the disk; zero: not known

	MemTableBytes uint64 // written and not yet in a table
	CacheBytes    uint64 // of blocks in memory
	CacheHits     uint64
	CacheMisses   uint64

	Levels []StorageLevel // the newest data first
	Tables uint64

	ReadAmplification int // number of tables that a lookup may have to read

	Flushes, FlushedBytes       uint64
	Compactions, CompactedBytes uint64
	CompactionDebt              uint64 // bytes that are due for compaction
	WriteStalls                 uint64 // times that commits waited for a flush or a compaction

	Archive *Archive // nil: no archive is configured

	Commits *Histogram // how long commits took, with their syncs
	Syncs   Latency    // of the log
}

// Archive is the state of an archive. Everything that is committed is shipped to it. Counts are since its writer
// started.
type Archive struct {
	Dir      string
	Lag      time.Duration // age of the oldest commit that cannot be restored yet; 0: all can be
	Earliest Instant       // first moment that can be restored; zero: not known yet
	BaseAt   Instant       // of the last entry in the newest base copy; zero: there is none yet
	Copying  bool          // a base copy is being made
	Queued   int           // bytes that wait to be shipped
	Bytes    uint64        // of the folder, approximately

	Entries, Shipped    uint64 // entries that were shipped, and their bytes
	Bases               uint64 // base copies that were made
	Overflows, Failures uint64 // times that the queue was full; attempts to write that failed
	Error               string // why the folder cannot be written now; empty: it is writable
}

// StorageLevel is a level of the store's tree of tables.
type StorageLevel struct{ Tables, Bytes uint64 }
