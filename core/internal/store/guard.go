package store

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

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// guard knows what must be in the folder, for what Pebble would not miss. Pebble reads its manifest up to the first
// record that is not whole, as it must after a crash, and so takes a damaged one for a shorter one: tables and removals
// of the time after it are then forgotten. And it replays what logs it finds, and each as far as it goes: it can't know
// that somebody has removed one, or cut it. The file GUARD says how far each manifest was synced, with a checksum, and
// which logs there are, with the length of those that are full. It is written with every sync of a manifest, before
// anything is removed that is in the manifest, and soon after a log was made; both are rare. Which of the logs are still
// wanted is in the manifest.
//
//	broker store guard 1
//	manifest MANIFEST-000031 4711 1a2b3c4d     bytes synced, CRC-32C of them
//	manifest MANIFEST-000044 1147 d4c3b2a1     the newest two, since a crash may bring back the one before
//	log 45 16777101                            bytes; if the manifest wants it, it must be there and this long
//	log 46                                     the one that is written to
//	sum 99aabbcc                               CRC-32C of the lines above
type guard struct {
	file sync.Mutex // one writes GUARD at a time

	mu        sync.Mutex    // never held for as long as the disk takes: commits wait for new logs
	manifests []manifestSum // oldest first, at most two
	logs      []logSize     // oldest first
}

// manifestSum is what is known of a manifest's synced bytes.
type manifestSum struct {
	name string
	size int64
	crc  uint32
}

// logSize is what is known of a log: its length, once it is full.
type logSize struct {
	number uint64
	size   int64
}

// Files and texts of the guard. On disk.
const (
	guardFile      = "GUARD"
	guardText      = "broker store guard "
	guardVersion   = 1
	manifestPrefix = "MANIFEST-"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// add counts bytes that were written.
func (m *manifestSum) add(p []byte) {
	m.size += int64(len(p))
	m.crc = crc32.Update(m.crc, castagnoli, p)
}

// madeLog notes a new log.
func (g *guard) madeLog(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.logs = append(g.logs, logSize{number: logNumber(name)})
}

// closedLog notes how long a log has become.
func (g *guard) closedLog(name string, size int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.logs {
		if g.logs[i].number == logNumber(name) {
			g.logs[i].size = size
		}
	}
}

// removedLog forgets a log that Pebble has no use for. GUARD may name it until it is written anew: the manifest does not
// want it.
func (g *guard) removedLog(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.logs = slices.DeleteFunc(g.logs, func(l logSize) bool { return l.number == logNumber(name) })
}

// syncedManifest notes what is known now of one manifest.
func (g *guard) syncedManifest(m manifestSum) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.IndexFunc(g.manifests, func(o manifestSum) bool { return o.name == m.name })
	if at >= 0 {
		g.manifests[at] = m
		return
	}
	g.manifests = append(g.manifests, m)
	g.manifests = g.manifests[max(0, len(g.manifests)-2):]
}

// write writes GUARD anew, with all that was noted.
func (g *guard) write(fsys vfs.FS, dir string) error {
	g.file.Lock()
	defer g.file.Unlock()
	text := g.text()
	if err := syncDir(fsys, dir); err != nil { // a crash must not leave GUARD and take a new log
		return err
	}
	return writeWhole(fsys, dir, guardFile, text)
}

// text is what GUARD says. An older broker takes the last log for the only one.
func (g *guard) text() string {
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

// parse reads what text wrote, and takes nothing that text would not write.
func (g *guard) parse(text string) error {
	body, sum, ok := strings.Cut(text, "sum ")
	want := fmt.Sprintf("%08x", crc32.Checksum([]byte(body), castagnoli))
	if !ok || strings.TrimSuffix(sum, "\n") != want {
		return errors.New("its checksum is wrong")
	}
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	if v, err := strconv.Atoi(strings.TrimPrefix(lines[0], guardText)); err != nil || v != guardVersion {
		return fmt.Errorf("%q: %w", lines[0], ErrNewerFormat)
	}
	for _, line := range lines[1:] {
		var m manifestSum
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
		return errors.New("a line of it is not as it is written")
	}
	return nil
}

// verify compares the folder with GUARD; current is the manifest that the marker names.
func (g *guard) verify(fsys vfs.FS, dir, current string) error {
	path := fsys.PathJoin(dir, guardFile)
	text, err := readWhole(fsys, path)
	if err == nil {
		err = g.parse(string(text))
	}
	if err != nil {
		return damaged(path, "look at the folder", err)
	}
	at := slices.IndexFunc(g.manifests, func(m manifestSum) bool { return m.name == current })
	if at < 0 {
		return damaged(fsys.PathJoin(dir, current), "look at the folder", errors.New("GUARD does not know it"))
	}
	oldest, err := g.manifests[at].verify(fsys, dir)
	if err != nil {
		return err
	}
	for _, l := range g.logs {
		if l.number < oldest {
			continue
		}
		path := fsys.PathJoin(dir, fmt.Sprintf("%06d%s", l.number, logSuffix))
		if err := l.verify(fsys, path); err != nil {
			return damaged(path, "look at the folder", err)
		}
	}
	return nil
}

// verify looks whether a log is there and long enough.
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

// verify reads a manifest as far as it was synced. It returns the number of the oldest log that the store needs.
func (m *manifestSum) verify(fsys vfs.FS, dir string) (oldestLog uint64, err error) {
	path := fsys.PathJoin(dir, m.name)
	f, err := fsys.Open(path)
	if err != nil {
		return 0, damaged(path, "look at the folder", err)
	}
	defer func() { _ = f.Close() }() // only read
	h := crc32.New(castagnoli)
	synced := io.TeeReader(bufio.NewReader(io.LimitReader(f, m.size)), h)
	oldestLog, err = wantedLogs(synced)
	if err == nil {
		_, err = io.Copy(io.Discard, synced)
	}
	what := fmt.Sprintf("read its first %d bytes", m.size)
	switch info, e := f.Stat(); {
	case errors.Join(err, e) != nil:
		return 0, damaged(path, what, errors.Join(err, e))
	case info.Size() < m.size:
		return 0, damaged(path, what, io.ErrUnexpectedEOF)
	case h.Sum32() != m.crc:
		return 0, damaged(path, what, errors.New("their checksum is wrong"))
	}
	return oldestLog, nil
}

// Tags of a manifest's records, as they have been since LevelDB. On disk.
const (
	tagComparer  = 1 // a string
	tagOldestLog = 2 // the number of the oldest log that is not in tables as a whole
)

// wantedLogs reads a manifest: the number of the oldest log that its last record to name one wants, or zero. It stops at
// what is no record, as Pebble does; whether that is damage, the checksum tells.
func wantedLogs(manifest io.Reader) (oldest uint64, err error) {
	records := record.NewReader(manifest, 0)
	for {
		r, err := records.Next()
		if errors.Is(err, io.EOF) || record.IsInvalidRecord(err) {
			return oldest, nil
		}
		if err != nil {
			return 0, err
		}
		// The two tags come first in a record, and the other ones may be skipped with it.
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
		if err != nil && !record.IsInvalidRecord(err) && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
}

// guardCopy writes GUARD for a folder that is whole, like a fresh copy.
func guardCopy(fsys vfs.FS, dir string) error {
	files, err := fsys.List(dir)
	if err != nil {
		return err
	}
	slices.Sort(files)
	var g guard
	var m manifestSum
	for _, name := range files {
		if strings.HasPrefix(name, manifestMarker) {
			m.name = markerValue(name)
		}
		if strings.HasSuffix(name, logSuffix) {
			info, err := fsys.Stat(fsys.PathJoin(dir, name))
			if err != nil {
				return err
			}
			g.logs = append(g.logs, logSize{logNumber(name), info.Size()})
		}
	}
	manifest, err := readWhole(fsys, fsys.PathJoin(dir, m.name))
	if err != nil {
		return err
	}
	m.add(manifest)
	g.syncedManifest(m)
	return g.write(fsys, dir)
}

// logNumber is the number in the name of a log; zero if it is none.
func logNumber(name string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimSuffix(name, logSuffix), 10, 64) // zero on an error
	return n
}

// damaged is short for a DamageError.
func damaged(path, what string, err error) error {
	if errors.Is(err, ErrNewerFormat) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return &DamageError{Path: path, What: what, Err: err}
}
