package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guard knows what must be in the folder, for what Pebble would not miss. Pebble reads its manifest up to the first
// record that is not whole, as it must after a crash, and so takes a damaged one for a shorter one: tables and removals
// of the time after it are then forgotten. And it replays what logs it finds: it can't know that somebody has removed
// the newest, taking it for a text that nobody needs. The file GUARD says how far each manifest was synced, with a
// checksum, and which log there was then. It is written with every sync of a manifest, which is rare, and before
// anything is removed that is in the manifest.
//
//	broker store guard 1
//	manifest MANIFEST-000031 4711 1a2b3c4d     bytes synced, CRC-32C of them
//	manifest MANIFEST-000044 1147 d4c3b2a1     the newest two, since a crash may bring back the one before
//	log 46                                     a log of this or a higher number must be there
//	sum 99aabbcc                               CRC-32C of the lines above
type guard struct {
	mu        sync.Mutex
	manifests []manifestSum // oldest first, at most two
	log       uint64
}

// manifestSum is what is known of a manifest's synced bytes.
type manifestSum struct {
	name string
	size int64
	crc  uint32
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

// sawLog notes that a log was made.
func (g *guard) sawLog(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log = max(g.log, logNumber(name))
}

// synced writes GUARD anew, with what is known now of one manifest.
func (g *guard) synced(fsys vfs.FS, dir string, m manifestSum) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.IndexFunc(g.manifests, func(o manifestSum) bool { return o.name == m.name })
	if at >= 0 {
		g.manifests[at] = m
	} else {
		g.manifests = append(g.manifests, m)
		g.manifests = g.manifests[max(0, len(g.manifests)-2):]
	}
	return writeWhole(fsys, dir, guardFile, g.text())
}

func (g *guard) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d\n", guardText, guardVersion)
	for _, m := range g.manifests {
		fmt.Fprintf(&b, "manifest %s %d %08x\n", m.name, m.size, m.crc)
	}
	fmt.Fprintf(&b, "log %d\n", g.log)
	fmt.Fprintf(&b, "sum %08x\n", crc32.Checksum([]byte(b.String()), castagnoli))
	return b.String()
}

// parse reads what text wrote.
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
		if _, err := fmt.Sscanf(line, "manifest %s %d %x", &m.name, &m.size, &m.crc); err == nil {
			g.manifests = append(g.manifests, m)
		} else if _, err := fmt.Sscanf(line, "log %d", &g.log); err != nil {
			return fmt.Errorf("line %q: %w", line, err)
		}
	}
	return nil
}

// verify compares the folder with GUARD; current is the manifest that the marker names.
func (g *guard) verify(fsys vfs.FS, dir, current string, files []string) error {
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
	if err := g.manifests[at].verify(fsys, dir); err != nil {
		return err
	}
	for _, name := range files {
		if strings.HasSuffix(name, logSuffix) && logNumber(name) >= g.log {
			return nil
		}
	}
	// Which number the newest had is not known: GUARD has a lower bound.
	return damaged(fsys.PathJoin(dir, "*"+logSuffix), "look at the folder",
		fmt.Errorf("the newest commits are in %06d%s or a later one, and there is none", g.log, logSuffix))
}

// verify reads a manifest as far as it was synced.
func (m *manifestSum) verify(fsys vfs.FS, dir string) error {
	path := fsys.PathJoin(dir, m.name)
	f, err := fsys.Open(path)
	if err != nil {
		return damaged(path, "look at the folder", err)
	}
	defer func() { _ = f.Close() }() // only read
	h := crc32.New(castagnoli)
	if _, err := io.CopyN(h, f, m.size); err != nil {
		return damaged(path, fmt.Sprintf("read its first %d bytes", m.size), err)
	}
	if h.Sum32() != m.crc {
		return damaged(path, fmt.Sprintf("read its first %d bytes", m.size), errors.New("their checksum is wrong"))
	}
	return nil
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
			g.sawLog(name)
		}
	}
	manifest, err := readWhole(fsys, fsys.PathJoin(dir, m.name))
	if err != nil {
		return err
	}
	m.add(manifest)
	return g.synced(fsys, dir, m)
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
