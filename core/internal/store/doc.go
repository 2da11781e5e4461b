// Package store makes the machine's decisions durable, in a Pebble database of its own. It is the only importer of
// Pebble.
//
// # Key space
//
// Numbers in keys are 8 bytes, big-endian, so that jobs are in the order of their submission and all small records of one
// job are adjacent:
//
//	'v'              format version of this store, a varint
//	'd' name         a document: the value as given
//	'm' name         a metadata entry: the value as given
//	'm' 0            the position of the last entry: epoch, number and time of its commit, index and hash if replicated
//	'm' 1            the id of the cluster that the store is part of
//	'j' seq          the job: what rarely changes
//	'j' seq 'f'      its last failure
//	'j' seq 'o'      its outcome
//	'j' seq 's'      its status
//	'b' seq          its body, if larger than record.InlineBytes: the bytes as submitted
//	'b' seq 'f'      its last failure, if large; 'j' seq 'f' then only says so
//	'b' seq 'o'      its outcome, if large; likewise
//
// A start reads the whole of 'j' in one pass and none of 'b', so large bodies cost it nothing. A change of state writes a
// status of some 20 bytes and touches nothing else.
//
// Keys that were written once are removed with Pebble's single delete, which disappears together with what it deletes when
// both meet in a flush: a job that comes and goes within one memtable costs no table at all. That is the job and its body,
// unless the job was rewritten (record.Rewritten). All other keys are removed with ordinary deletes: a single delete of a
// key that was written twice would bring back the older value.
//
// # Records
//
// Values under 'j' are records (package record): a version byte, a bit set of the fields that are present, the fields in
// the order of their bits. A field with the zero value is left out. A new field takes a new bit; an unknown bit or version
// is refused with record.ErrNewerFormat. Records carry no checksum of their own: every block of a table and every chunk of
// a log has one, and Pebble verifies it on each read from disk.
//
// # Formats
//
// The format version changes when an older broker would misread the store although it knows every record in it:
//
//	1    every job was written once
//	2    jobs may be rewritten; an older broker would remove them with single deletes. The status of a blocked job may name
//	     dependencies that were done since it was written; an older broker would take them for lost
//
// An older store is upgraded when it is opened for writing: the 'v' key first, then FORMAT. Whichever of the two a crash
// leaves behind, the next start completes the upgrade. A newer store is refused.
//
// # Replication
//
// The store of a member of a cluster writes no log: the members' replicated log, which is a store too (Log), holds every
// entry until Flush has written it to tables. The position has the index of the last entry in that log, so that a restart
// knows what to replay.
//
// # Files
//
// Beside Pebble's files the folder has two text files. FORMAT is one line, for people and for the start: once it exists, a
// folder without Pebble's manifest or without the 'v' key is a damaged store and not a new one. GUARD (integrity.Guard)
// covers what Pebble would not miss: the end of a manifest, a log, the end of a complete log. A store never starts empty,
// or in an older state, without an error, with one exception that no file can prevent: damage within the last two blocks,
// of 32 KiB, of the newest log looks like the torn tail that a crash leaves, and is cut off like one.
//
// # Failure
//
// The first failed write, sync, rename or creation in the folder is final: Commit returns that error from then on, while
// reads continue. So are damage and failed reads in Pebble's own compactions; a caller that reads a damaged job only gets
// a *DamageError. Package faultfs explains how, and why.
package store
