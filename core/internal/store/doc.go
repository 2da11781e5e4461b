// Package store makes the machine's decisions durable, in a Pebble database of its own. Only this package and the
// packages below it import Pebble.
//
// # Key space
//
// Numbers in keys are 8 bytes, big-endian, so that jobs are in the order of their submission and all small records of
// one job are adjacent:
//
//	'v'              format version of this store, a varint
//	'd' name         a document: the value as given
//	'm' name         a metadata entry: the value as given
//	'm' 0            the position of the last entry: epoch, number and time of its commit, index and hash if replicated
//	'm' 1            the id of the cluster that the store is part of
//	'j' seq          the job: fields that rarely change
//	'j' seq 'f'      its last failure
//	'j' seq 'o'      its outcome
//	'j' seq 's'      its status
//	'b' seq          its body, if larger than record.InlineBytes: the bytes as submitted
//	'b' seq 'f'      its last failure, if large; 'j' seq 'f' then only says so
//	'b' seq 'o'      its outcome, if large; 'j' seq 'o' then only says so
//	'b' seq 't' slot an entry of its timeline; the slot is 2 bytes
//
// A start reads all of 'j' in one pass and nothing of 'b', so large bodies do not slow it down. A change of state only
// writes a status of about 20 bytes.
//
// Keys that were written once are removed with Pebble's single delete: when a flush sees both the key and its single
// delete, both disappear. So a job that comes and goes within one memtable is never written to a table. This applies to
// the job and its body, unless the job was rewritten (record.Rewritten). All other keys are removed with ordinary
// deletes: a single delete of a key that was written twice would bring back the older value.
//
// # Records
//
// Values under 'j' are records (package record): a version byte, a bit set of the fields that are present, the fields
// in the order of their bits. A field with the zero value is left out. A new field takes a new bit; an unknown bit or
// version is refused with record.ErrNewerFormat. Records carry no checksum of their own: every block of a table and
// every chunk of a log has one, and Pebble verifies it on each read from disk.
//
// # Formats
//
// The format version changes when an older broker would misread the store although it knows every record in it:
//
//	1    every job was written once
//	2    jobs may be rewritten; an older broker would remove them with single deletes. The status of a blocked job may name
//	     dependencies that were done since it was written; an older broker would take them for lost
//
// An older store is upgraded when it is opened for writing: the 'v' key first, then FORMAT. Whichever of the two a
// crash leaves behind, the next start completes the upgrade. A newer store is refused.
//
// # Replication
//
// The store of a member of a cluster writes no log: the members' replicated log, which is a store too (Log), holds
// every entry until Flush has written it to tables. The position has the index of the last entry in that log, so that a
// restart knows what to replay.
//
// # Files
//
// Beside Pebble's files the folder has two text files. FORMAT is one line, for people and for the start: once it
// exists, a folder without Pebble's manifest or without the 'v' key is a damaged store and not a new one. GUARD
// (integrity.Guard) covers what Pebble would not miss: the end of a manifest, a log, the end of a complete log. So a
// store never starts empty or in an older state without an error. There is one exception that no file can prevent:
// after a crash, damage of the last commit looks like the torn tail of a crash, and is cut off in the same way.
//
// # Failure
//
// The first failed write, sync, rename or creation in the folder is final: Append and Apply return that error from then
// on, while reads continue. Damage and failed reads in Pebble's own compactions are final too; a caller that reads a
// damaged job only gets a *DamageError. Package faultfs explains how, and why.
package store
