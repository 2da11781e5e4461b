package integrity

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	pebblerecord "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Chunks of a log as Pebble writes them: a checksum of 4 bytes, a length of 2, a kind, the number of the log in 4 bytes
// and, in the second format, an offset of 8. A chunk never leaves its block.
const (
	logBlock         = 32 << 10
	chunkHeader      = 11
	chunkSyncHeader  = chunkHeader + 8
	chunkFull        = 5 // the whole of a commit
	chunkFirst       = 6
	chunkSyncFull    = 9
	chunkSyncFirst   = 10
	chunkSyncLast    = 12
	chunkChecksumAdd = 0xa282ead8
	logTrailer       = chunkHeader + chunkSyncHeader // most bytes after the last commit of a complete log
)

// CheckLogTail distinguishes damage in a log from the torn end that a crash leaves. Each commit is written after the
// one before it was synced, so a log is damaged if a commit cannot be read but a later one can. closed is the size of a
// log that was completed, all of which can be read; zero: it was not. Pebble's own offsets of synced data do not count
// whole blocks: with large commits, Pebble would take most damage for the end of the log.
func CheckLogTail(fsys vfs.FS, path string, closed int64) error {
	sound, err := SoundLogBytes(fsys, path)
	if err != nil {
		return err
	}
	if closed-sound > logTrailer {
		return Damaged(path, "replay the log",
			fmt.Errorf("it was completed with %d bytes, and can be read up to byte %d only", closed, sound))
	}
	f, err := fsys.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is only read
	number := uint32(logNumber(fsys.PathBase(path)))
	block := make([]byte, logBlock)
	for start := sound - sound%logBlock; ; start += logBlock {
		n, err := f.ReadAt(block, start)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if at := commitAfter(block[:n], int(max(sound-start, -1)), number); at >= 0 {
			return Damaged(path, "replay the log",
				fmt.Errorf("the commit at byte %d cannot be read, but one at byte %d can", sound, start+int64(at)))
		}
		if n < logBlock {
			return nil
		}
	}
}

// commitAfter returns the offset of the first intact chunk after an offset of a block that begins a commit; negative:
// there is none.
func commitAfter(block []byte, offset int, number uint32) int {
	for at := max(offset, 0); at+chunkHeader <= len(block); {
		kind := block[at+6]
		header := chunkHeader
		if kind >= chunkSyncFull {
			header = chunkSyncHeader
		}
		end := at + header + int(binary.LittleEndian.Uint16(block[at+4:]))
		if kind < chunkFull || kind > chunkSyncLast || end > len(block) ||
			binary.LittleEndian.Uint32(block[at+7:]) != number {
			return -1
		}
		sum := crc32.Checksum(block[at+6:end], castagnoli)
		whole := binary.LittleEndian.Uint32(block[at:]) == (sum>>15|sum<<17)+chunkChecksumAdd
		if begins := kind == chunkFull || kind == chunkFirst || kind == chunkSyncFull ||
			kind == chunkSyncFirst; whole && begins && at > offset {
			return at
		}
		at = end // also after a damaged chunk, whose length may be right
	}
	return -1
}

// TrimNewestLog removes the bytes after the last whole commit of a copied store's newest log.
func TrimNewestLog(fsys vfs.FS, dir string) error {
	found, err := Scan(fsys, dir, &Guard{})
	if err != nil || found.NewestLog == "" {
		return err
	}
	path := fsys.PathJoin(dir, found.NewestLog)
	sound, err := SoundLogBytes(fsys, path)
	if err != nil {
		return err
	}
	info, err := fsys.Stat(path)
	if err != nil || info.Size() == sound {
		return err
	}
	whole := path + ".whole"
	if err := copyStart(fsys, path, whole, sound); err != nil {
		return err
	}
	return fsys.Rename(whole, path)
}

// copyStart copies the first bytes of a file.
func copyStart(fsys vfs.FS, from, to string, size int64) (err error) {
	in, err := fsys.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it is only read
	out, err := fsys.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, size))
	return errors.Join(err, out.Sync(), out.Close())
}

// SoundLogBytes is the size of the commits at the beginning of a log that can be read.
func SoundLogBytes(fsys vfs.FS, path string) (sound int64, err error) {
	return sound, readLog(fsys, path, func(end int64, _ []byte) { sound = end })
}

// readLog calls each for the commits at the beginning of a log that can be read, with the byte at which they end. A
// commit is valid during the call.
func readLog(fsys vfs.FS, path string, each func(end int64, commit []byte)) error {
	f, err := fsys.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is only read
	var info pebble.WALCreateInfo    // the only public name of the type of a log's number
	log := pebblerecord.NewReader(f, numberLike(info.FileNum, logNumber(fsys.PathBase(path))))
	var buf bytes.Buffer
	for {
		commit, err := log.Next()
		if err == nil {
			buf.Reset()
			_, err = buf.ReadFrom(commit)
		}
		if err != nil {
			return nil // the end, or damage
		}
		each(log.Offset(), buf.Bytes())
	}
}

// NewestCommits returns the commits of the logs that follow each other without a missing commit up to the newest. It is
// for a store whose manifest, which names the first log that is needed, is lost. Logs from before a missing commit are
// only kept for reuse.
func NewestCommits(fsys vfs.FS, dir string) (commits [][]byte, err error) {
	files, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(name string) bool { return !strings.HasSuffix(name, LogSuffix) })
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(logNumber(b), logNumber(a)) })
	first := uint64(0) // of the logs so far; zero: none
	for _, name := range files {
		from, end := uint64(0), uint64(0)
		var more [][]byte
		if err := readLog(fsys, fsys.PathJoin(dir, name), func(_ int64, commit []byte) {
			if h, ok := batchrepr.ReadHeader(commit); ok {
				if from == 0 {
					from = uint64(h.SeqNum)
				}
				end = uint64(h.SeqNum) + uint64(h.Count)
				more = append(more, bytes.Clone(commit))
			}
		}); err != nil {
			return nil, err
		}
		if from == 0 {
			continue
		}
		if first != 0 && end != first {
			break
		}
		first = from
		commits = append(commits, more...)
	}
	return commits, nil
}

// numberLike is n as a number of the type of like.
func numberLike[T ~uint64](_ T, n uint64) T { return T(n) }
