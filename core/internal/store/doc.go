// Package store makes the machine's decisions durable, in a Pebble database of its own. It is the only importer of
// Pebble.
//
// # Key space
//
// Numbers in keys are 8 bytes, big-endian, so that jobs lie in the order of their admission and all small records of one
// job lie side by side:
//
//	'v'              format version of this store, a varint
//	'm' name         a mark: the value as it was given
//	'j' seq          the job: what never changes. Written once, removed once
//	'j' seq 'f'      its last failure
//	'j' seq 'o'      its outcome
//	'j' seq 's'      its status
//	'b' seq          its body, if that is larger than record.InlineBytes: bytes as they came. Written once, removed once
//	'b' seq 'f'      its last failure, if that is large; 'j' seq 'f' then only says so
//	'b' seq 'o'      its outcome, if that is large; likewise
//
// The start reads the whole of 'j' in one pass and none of 'b', so large bodies cost it nothing. A change of state
// writes a status of some 20 bytes and touches nothing else. Keys that are written once are removed with Pebble's
// single-delete, which vanishes together with what it deletes when both meet in a flush: a job that comes and goes within
// one memtable costs no table at all. All other keys are removed with ordinary deletes.
//
// # Records
//
// Values under 'j' are records (record.go, status.go): a version byte, a bit set of the fields that are there, the
// fields in the order of their bits. A field is left out when it has its zero value. New fields take new bits; a bit or
// a version that this code does not know is refused as ErrNewerFormat, never guessed at. Records carry no checksum of
// their own: every block of a table and every chunk of a log has one, and Pebble verifies it on each read from disk.
//
// # Files
//
// Beside Pebble's files the folder has two of ours, both text. FORMAT is one line for people and for the start: once it
// is there, a folder without Pebble's manifest or without the 'v' key is a damaged store and not a new one. GUARD
// (guard.go) knows what Pebble would not miss: the end of a manifest, a log, the end of a log that is full. A store never
// starts empty, or as it once was, without saying so; with one exception that no file can help: damage within the last
// two blocks, of 32 KiB, of the newest log looks like the torn end that a crash leaves, and is cut like one.
//
// # Failure
//
// The first failed write, sync, rename or creation in the folder is final: Commit returns that error, then and ever
// after, while reads go on. So are damage and failed reads that Pebble meets on its own, merging tables; whoever reads a
// damaged job only gets a *DamageError. Pebble would end the process in many such cases, in some of them by unlocking an
// unlocked mutex, which no recover can stop. So it never learns of the failure: the file system it is given
// (failstop.go, failread.go) notes the error and parks the goroutine that met it, and each one that tries to change the
// folder later, for good. What could not be written can then also not be half repaired: the folder stays as the failure
// left it, which is what recovery is made and tested for.
package store
