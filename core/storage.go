package core

// Storage is the state of the store. Counts are since the process started.
type Storage struct {
	DiskBytes uint64 // of all files, also of those that are about to be removed
	LiveBytes uint64 // of the tables in use
	LogBytes  uint64 // of the write-ahead log, which a restart replays
	FreeBytes uint64 // on the disk; zero: not known

	MemTableBytes uint64 // written and not yet in a table
	CacheBytes    uint64 // of blocks in memory
	CacheHits     uint64
	CacheMisses   uint64

	Levels []StorageLevel // the newest data first
	Tables uint64
	// How many tables a lookup may have to read.
	ReadAmplification int

	Flushes, FlushedBytes       uint64
	Compactions, CompactedBytes uint64
	CompactionDebt              uint64 // bytes that are due for compaction
	WriteStalls                 uint64 // times that commits waited for a flush or a compaction

	Commits *Histogram // how long commits took, with their syncs
	Syncs   Latency    // of the log
}

// StorageLevel is a level of the store's tree of tables.
type StorageLevel struct{ Tables, Bytes uint64 }
