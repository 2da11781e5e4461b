package replica

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// copyStream is the stream of a copy with one table.
func copyStream(t *testing.T, content []byte) []byte {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "000002.sst"), content)
	files, _, err := packFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	if err := pack(&stream, dir, files); err != nil {
		t.Fatal(err)
	}
	return stream.Bytes()
}

// put writes a file and makes its folder.
func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// newReceiver makes a node that can receive copies, with an old store of one table.
func newReceiver(t *testing.T) *Node {
	t.Helper()
	n := &Node{o: Options{Dir: t.TempDir()}.withDefaults(), closed: make(chan struct{})}
	n.log, n.stream = newLogger(n.o.Log), newStream(n)
	n.snaps = &snapshots{n: n, dir: n.dir(snapshotsDir)}
	put(t, filepath.Join(n.o.Dir, "000001.sst"), []byte("old"))
	if err := os.MkdirAll(n.snaps.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.running.Wait)
	return n
}

// receive receives a stream in pieces, and returns the sink before it is closed.
func (n *Node) receive(t *testing.T, stream []byte) (raft.SnapshotSink, error) {
	t.Helper()
	k, err := n.snaps.Create(1, 9, 2, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{k}, bytes.NewReader(stream), make([]byte, 1000))
	return k, err
}

// sizes are the sizes of the files in a folder, by path.
func sizes(t *testing.T, dir string) (files map[string]int64, sum int64) {
	t.Helper()
	files = map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			name := strings.TrimPrefix(path, dir+string(filepath.Separator))
			files[name] = info.Size()
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, sum
}

// A received copy is unpacked as it arrives: until it replaces the store, it takes its own size only once.
func TestReceivedCopyTakesItsSizeOnce(t *testing.T) {
	t.Parallel()
	n := newReceiver(t)
	table := bytes.Repeat([]byte("t"), 1<<20)
	k, err := n.receive(t, copyStream(t, table))
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if files, sum := sizes(t, n.o.Dir); sum < 1<<20 || sum > 1<<20+4096 {
		t.Errorf("a copy of 1 MiB takes %d bytes: %v", sum, files)
	}
}

// A copy that is damaged, or ends early, is refused before it could replace the store, and nothing of it stays.
func TestDamagedCopyIsRefusedWhenItArrives(t *testing.T) {
	t.Parallel()
	stream := copyStream(t, bytes.Repeat([]byte("t"), 100_000))
	damaged := bytes.Clone(stream)
	damaged[50_000] ^= 1
	for name, s := range map[string][]byte{"damaged": damaged, "cut": stream[:50_000], "empty": nil} {
		n := newReceiver(t)
		k, err := n.receive(t, s)
		if err == nil {
			err = k.Close()
		} else if failed := k.Cancel(); failed != nil {
			t.Error(failed)
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if files, _ := sizes(t, n.o.Dir); len(files) != 1 {
			t.Errorf("%s: %v are left", name, files)
		}
	}
}

// A crash at any point of an installation, also of an older program, leads to the new store at the next start.
func TestInstallationContinuesAfterACrash(t *testing.T) {
	t.Parallel()
	content := []byte("new")
	stream := copyStream(t, content)
	for name, crash := range map[string]func(n *Node, snapshot string) error{
		"received": func(*Node, string) error { return nil },
		"marked":   func(n *Node, _ string) error { return writeFile(n.dir(installMark), nil) },
		"installed": func(n *Node, snapshot string) error {
			return errors.Join(writeFile(n.dir(installMark), nil), n.replaceStore(filepath.Join(snapshot, storeDir)))
		},
		"received, with a part of an earlier copy": func(n *Node, _ string) error {
			return errors.Join(os.MkdirAll(n.dir(incomingDir), 0o700),
				os.WriteFile(filepath.Join(n.dir(incomingDir), "000003.sst"), nil, 0o600))
		},
		"received by an older program": func(_ *Node, snapshot string) error {
			return errors.Join(os.RemoveAll(filepath.Join(snapshot, storeDir)),
				os.WriteFile(filepath.Join(snapshot, dataFile), stream, 0o600))
		},
		"marked by an older program": func(n *Node, snapshot string) error {
			return errors.Join(os.Rename(filepath.Join(snapshot, storeDir), n.dir(incomingDir)),
				os.WriteFile(filepath.Join(snapshot, dataFile), stream, 0o600), writeFile(n.dir(installMark), nil))
		},
	} {
		n := newReceiver(t)
		k, err := n.receive(t, stream)
		if err == nil {
			err = k.Close()
		}
		if err = errors.Join(err, crash(n, filepath.Join(n.snaps.dir, k.ID()))); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second start finds nothing to do
			if err := errors.Join(n.snaps.sweep(), n.resumeInstall()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		files, _ := sizes(t, n.o.Dir)
		if len(files) != 2 || files["000002.sst"] != int64(len(content)) {
			t.Errorf("%s: the files are %v", name, files)
		}
	}
}
