// Package archive ships what a broker commits to a folder, and makes stores of it again: the newest state, or that of a moment.
//
//	engine ─▶ Writer.Add ─▶ queue, bounded ─▶ segments      every commit's entry, within Options.Every
//	store  ─▶ checkpoint ─▶ base copies                     at the start of a timeline, then every Options.BaseEvery
//
// It knows stores and entries. It knows neither rules nor protocols, and no engine: an engine calls a Writer as its Shipper.
//
// # Folder
//
//	ARCHIVE                              says what the folder is, and the version of its format
//	20260102T030405.000006Z-1a2b3c4d/    a timeline, and when it began
//	    base-NUMBER-AT.tar               a copy of the store after entry NUMBER, which was sealed at AT
//	    log-NUMBER-RANDOM.seg            a segment: entries from NUMBER on
//
// A base copy is a tar file of the files of a store. Its last file is SHA256SUMS, in the format of sha256sum. It gets its name once
// it is complete. A segment is
//
//	"brkseg1\n"
//	length, 4 bytes │ CRC-32C of the entry, 4 bytes │ entry (record.AppendEntry)      again and again
//
// and it ends wherever its writer stopped, perhaps within an entry. The next segment of a timeline begins with the entry after the
// last one that was shipped, or with some that are in the segment before too. Numbers are decimal, lengths big-endian.
//
// # Timelines
//
// The entries of a timeline follow each other without a gap. Whatever makes a gap begins a new timeline, with a base copy: a crash
// before the last entries were shipped, a queue that overflowed, a store that was restored. A moment belongs to the last timeline that
// had begun then and that has a base copy; so a restored broker may use the archive of which it was restored, and its archive
// still has the moments that the restored state lacks.
//
// # Failure
//
// The folder may be slow, full or gone: nothing waits for it. What cannot be written stays in the queue; when that is full, the
// timeline has ended, and a new one begins once the folder takes files again.
package archive
