package store

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// copyOf writes a folder that stands for a copy of a store.
func copyOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, size := range map[string]int{"000001.sst": 1000, "MANIFEST": 512, "empty": 0} {
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTarIsReceivedUnchanged(t *testing.T) {
	t.Parallel()
	from, to := copyOf(t), filepath.Join(t.TempDir(), "to")
	a, err := OpenTar(from)
	if err != nil {
		t.Fatal(err)
	}
	var sent bytes.Buffer
	if n, err := a.WriteTo(&sent); err != nil || n != a.Size || int64(sent.Len()) != n {
		t.Fatalf("%d bytes of %d sent, %v", n, a.Size, err)
	}
	if err := ReceiveCopy(bytes.NewReader(sent.Bytes()), to); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"000001.sst", "MANIFEST", "empty"} {
		want, _ := os.ReadFile(filepath.Join(from, name))
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if err := ReceiveCopy(bytes.NewReader(sent.Bytes()), to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second copy: %v", err)
	}
}

func TestIncompleteTarIsRefused(t *testing.T) {
	t.Parallel()
	a, err := OpenTar(copyOf(t))
	if err != nil {
		t.Fatal(err)
	}
	var sent bytes.Buffer
	if _, err := a.WriteTo(&sent); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{100, 600, 1200} {
		to := filepath.Join(t.TempDir(), "to")
		if err := ReceiveCopy(bytes.NewReader(sent.Bytes()[:n]), to); err == nil {
			t.Errorf("%d bytes are accepted", n)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("%d bytes make a copy", n)
		}
	}
}

func TestTarWithAPathIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../evil", "/evil", "a/b"} {
		var sent bytes.Buffer
		w := tar.NewWriter(&sent)
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: name, Mode: 0o600}), w.Close()); err != nil {
			t.Fatal(err)
		}
		if err := ReceiveCopy(&sent, filepath.Join(t.TempDir(), "to")); err == nil ||
			!strings.Contains(err.Error(), "has no file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
