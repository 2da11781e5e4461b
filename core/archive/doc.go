// Package archive ships everything that a broker commits to a folder. From the folder it can restore a store: in its
// newest state, or as it was at a given time.
//
//	engine ─▶ Writer.Add ─▶ queue, bounded ─▶ segments      every commit's entry, within Options.Every
//	store  ─▶ checkpoint ─▶ base copies                     at the start of a timeline, then every Options.BaseEvery
//
// It knows stores and entries. It knows neither rules nor protocols. An engine calls a Writer as its Shipper.
//
// # Folder
//
//	ARCHIVE                              says what the folder is, and the version of its format
//	20260102T030405.000006Z-1a2b3c4d/    a timeline, and when it began
//	    base-NUMBER-AT.tar               a copy of the store after entry NUMBER, which was sealed at AT
//	    log-NUMBER-RANDOM.seg            a segment: entries from NUMBER on
//
// A base copy is a tar file of the files of a store. Its last file is SHA256SUMS, in the format of sha256sum. The base
// copy gets its name once it is complete. A segment is
//
//	"brkseg1\n"
//	length, 4 bytes │ CRC-32C of the entry, 4 bytes │ entry (record.AppendEntry)      again and again
//
// and it ends where its writer stopped, perhaps within an entry. The next segment of a timeline begins with the entry
// after the last shipped one, or repeats some entries of the previous segment. Numbers are decimal, lengths big-endian.
//
// # Timelines
//
// The entries of a timeline have no gaps. Every gap begins a new timeline, with a base copy. Causes of a gap are a
// crash before the last entries were shipped, a full queue, and a restored store. A point in time belongs to the last
// timeline that had begun by then and has a base copy. So a restored broker may use the archive that it was restored
// from; the archive still has the later states that the restored store lacks.
//
// # Failure
//
// The folder may be slow, full or missing: the broker never waits for it. Entries that cannot be written stay in the
// queue. When the queue is full, the timeline ends, and a new one begins once the folder is writable again.
package archive
