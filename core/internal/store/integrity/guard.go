package integrity

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	pebblerecord "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/record"
	"broker/core/internal/store/atomicfile"
)

// Guard detects damage that Pebble cannot detect. Pebble reads its manifest up to the first incomplete record, as it
// must after a crash. So it treats a damaged manifest as a shorter one and forgets later tables and removals. It also
// replays the logs that it finds, each up to its end, and cannot know that a log was removed or truncated. The file
// GUARD has the synced length and a checksum of each manifest, and the names of the logs, with the length of complete
// logs. It is written with every sync of a manifest, before any file named in the manifest is removed, and soon after a
// log is created; both are rare. The manifest says which logs are still needed.
//
//	broker store guard 1
//	manifest MANIFEST-000031 4711 1a2b3c4d     bytes synced, CRC-32C of them
//	manifest MANIFEST-000044 1147 d4c3b2a1     the newest two, since a crash may bring back the one before
//	log 45 16777101                            bytes; if the manifest needs it, it must exist and be this long
//	log 46                                     the one being written
//	sum 99aabbcc                               CRC-32C of the lines above
type Guard struct {
	file sync.Mutex // held while GUARD is written

	mu        sync.Mutex    // guards the fields below; not held during I/O, because commits wait for new logs
	manifests []ManifestSum // oldest first, at most two
	logs      []logSize     // oldest first
}

// ManifestSum is the length and checksum of a manifest's synced bytes.
type ManifestSum struct {
	name string
	size int64
	crc  uint32
}

// logSize is the length of a log, once it is complete.
type logSize struct {
	number uint64
	size   int64
}

// Name and texts of the file. On disk.
const (
	GuardFile    = "GUARD"
	guardText    = "broker store guard "
	guardVersion = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// NewManifestSum starts the sum of an empty manifest.
func NewManifestSum(name string) *ManifestSum { return &ManifestSum{name: name} }

// Add counts bytes that were written.
func (m *ManifestSum) Add(p []byte) {
	m.size += int64(len(p))
	m.crc = crc32.Update(m.crc, castagnoli, p)
}

// LogCreated records a new log.
func (g *Guard) LogCreated(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.logs = append(g.logs, logSize{number: logNumber(name)})
}

// LogClosed records the length of a complete log.
func (g *Guard) LogClosed(name string, size int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.logs {
		if g.logs[i].number == logNumber(name) {
			g.logs[i].size = size
		}
	}
}

// sizeOf is the size of a log that was completed, else zero.
func (g *Guard) sizeOf(name string) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.logs {
		if l.number == logNumber(name) {
			return l.size
		}
	}
	return 0
}

// LogRemoved forgets a log. GUARD may name it until it is written again, which is harmless: the manifest does not need
// it.
func (g *Guard) LogRemoved(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.logs = slices.DeleteFunc(g.logs, func(l logSize) bool { return l.number == logNumber(name) })
}

// ManifestSynced records the synced length and checksum of a manifest.
func (g *Guard) ManifestSynced(m ManifestSum) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.IndexFunc(g.manifests, func(o ManifestSum) bool { return o.name == m.name })
	if at >= 0 {
		g.manifests[at] = m
		return
	}
	g.manifests = append(g.manifests, m)
	g.manifests = g.manifests[max(0, len(g.manifests)-2):]
}

// Write rewrites GUARD with the recorded data.
func (g *Guard) Write(fsys vfs.FS, dir string) error {
	g.file.Lock()
	defer g.file.Unlock()
	text := g.text()
	if err := atomicfile.SyncDir(fsys, dir); err != nil { // a crash must not keep GUARD but lose a new log
		return err
	}
	return atomicfile.Write(fsys, dir, GuardFile, text)
}

// text is the content of GUARD.
func (g *Guard) text() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d\n", guardText, guardVersion)
	for _, m := range g.manifests {
		fmt.Fprintf(&b, "manifest %s %d %08x\n", m.name, m.size, m.crc)
	}
	for _, l := range g.logs {
		if l.size > 0 {
			fmt.Fprintf(&b, "log %d %d\n", l.number, l.size)
		} else {
			fmt.Fprintf(&b, "log %d\n", l.number)
		}
	}
	fmt.Fprintf(&b, "sum %08x\n", crc32.Checksum([]byte(b.String()), castagnoli))
	return b.String()
}

// parse is the inverse of text; it refuses everything that text would not write.
func (g *Guard) parse(text string) error {
	body, sum, ok := strings.Cut(text, "sum ")
	want := fmt.Sprintf("%08x", crc32.Checksum([]byte(body), castagnoli))
	if !ok || strings.TrimSuffix(sum, "\n") != want {
		return errors.New("its checksum is wrong")
	}
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	if v, err := strconv.Atoi(strings.TrimPrefix(lines[0], guardText)); err != nil || v != guardVersion {
		return fmt.Errorf("%q: %w", lines[0], record.ErrNewerFormat)
	}
	for _, line := range lines[1:] {
		var m ManifestSum
		var l logSize
		if _, err := fmt.Sscanf(line, "manifest %s %d %x", &m.name, &m.size, &m.crc); err == nil {
			g.manifests = append(g.manifests, m)
		} else if n, err := fmt.Sscanf(line, "log %d %d", &l.number, &l.size); n > 0 {
			g.logs = append(g.logs, l)
		} else {
			return fmt.Errorf("line %q: %w", line, err)
		}
	}
	if g.text() != text {
		return errors.New("a line of it is not in the form in which it is written")
	}
	return nil
}

// verify compares the folder with GUARD; current is the manifest that the marker names.
func (g *Guard) verify(fsys vfs.FS, dir, current string) error {
	path := fsys.PathJoin(dir, GuardFile)
	text, err := atomicfile.Read(fsys, path)
	if err == nil {
		err = g.parse(string(text))
	}
	if err != nil {
		return Damaged(path, "scan the folder", err)
	}
	at := slices.IndexFunc(g.manifests, func(m ManifestSum) bool { return m.name == current })
	if at < 0 {
		return Damaged(fsys.PathJoin(dir, current), "scan the folder", errors.New("GUARD does not know it"))
	}
	oldest, err := g.manifests[at].verify(fsys, dir)
	if err != nil {
		return err
	}
	for _, l := range g.logs {
		if l.number < oldest {
			continue
		}
		path := fsys.PathJoin(dir, fmt.Sprintf("%06d%s", l.number, LogSuffix))
		if err := l.verify(fsys, path); err != nil {
			return Damaged(path, "scan the folder", err)
		}
	}
	return nil
}

// verify checks that a log exists and is long enough.
func (l logSize) verify(fsys vfs.FS, path string) error {
	info, err := fsys.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() < l.size {
		return fmt.Errorf("it has %d bytes of %d", info.Size(), l.size)
	}
	return nil
}

// verify checks the synced part of a manifest. It returns the number of the oldest log that the store needs.
func (m *ManifestSum) verify(fsys vfs.FS, dir string) (oldestLog uint64, err error) {
	path := fsys.PathJoin(dir, m.name)
	f, err := fsys.Open(path)
	if err != nil {
		return 0, Damaged(path, "scan the folder", err)
	}
	defer func() { _ = f.Close() }() // only read
	h := crc32.New(castagnoli)
	synced := io.TeeReader(bufio.NewReader(io.LimitReader(f, m.size)), h)
	oldestLog, err = neededLogs(synced)
	if err == nil {
		_, err = io.Copy(io.Discard, synced)
	}
	what := fmt.Sprintf("read its first %d bytes", m.size)
	switch info, e := f.Stat(); {
	case errors.Join(err, e) != nil:
		return 0, Damaged(path, what, errors.Join(err, e))
	case info.Size() < m.size:
		return 0, Damaged(path, what, io.ErrUnexpectedEOF)
	case h.Sum32() != m.crc:
		return 0, Damaged(path, what, errors.New("their checksum is wrong"))
	}
	return oldestLog, nil
}

// Tags of a manifest's records, as they have been since LevelDB. On disk.
const (
	tagComparer  = 1 // a string
	tagOldestLog = 2 // the number of the oldest log that is not completely in tables
)

// neededLogs reads a manifest and returns the number of the oldest log that is still needed, or zero. It stops at the
// first invalid record, as Pebble does; the checksum says whether that is damage.
func neededLogs(manifest io.Reader) (oldest uint64, err error) {
	records := pebblerecord.NewReader(manifest, 0)
	for {
		r, err := records.Next()
		if errors.Is(err, io.EOF) || pebblerecord.IsInvalidRecord(err) {
			return oldest, nil
		}
		if err != nil {
			return 0, err
		}
		// The two tags come first in a record; the others can be skipped with the rest of it.
		b := bufio.NewReaderSize(r, 64)
		tag, err := binary.ReadUvarint(b)
		if err == nil && tag == tagComparer {
			var n uint64
			if n, err = binary.ReadUvarint(b); err == nil {
				_, err = b.Discard(int(n))
			}
			if err == nil {
				tag, err = binary.ReadUvarint(b)
			}
		}
		if err == nil && tag == tagOldestLog {
			oldest, err = binary.ReadUvarint(b)
		}
		if err != nil && !pebblerecord.IsInvalidRecord(err) && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
}

// WriteForCopy writes GUARD for a complete folder, such as a fresh copy.
func WriteForCopy(fsys vfs.FS, dir string) error {
	files, err := fsys.List(dir)
	if err != nil {
		return err
	}
	slices.Sort(files)
	var g Guard
	var m ManifestSum
	for _, name := range files {
		if strings.HasPrefix(name, ManifestMarker) {
			m.name = markerValue(name)
		}
		if strings.HasSuffix(name, LogSuffix) {
			info, err := fsys.Stat(fsys.PathJoin(dir, name))
			if err != nil {
				return err
			}
			g.logs = append(g.logs, logSize{logNumber(name), info.Size()})
		}
	}
	manifest, err := atomicfile.Read(fsys, fsys.PathJoin(dir, m.name))
	if err != nil {
		return err
	}
	m.Add(manifest)
	g.ManifestSynced(m)
	return g.Write(fsys, dir)
}

// logNumber returns the number in the name of a log, or zero.
func logNumber(name string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimSuffix(name, LogSuffix), 10, 64) // zero on an error
	return n
}
