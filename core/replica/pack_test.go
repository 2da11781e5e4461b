package replica

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestChangedOrIncompleteCopiesAreRefused(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	content := map[string][]byte{"000001.sst": bytes.Repeat([]byte("t"), 300_000), "FORMAT": []byte("f"), "empty": nil}
	for name, b := range content {
		if err := os.WriteFile(filepath.Join(from, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, size, err := packFiles(from)
	if err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	if err := pack(&stream, from, files); err != nil {
		t.Fatal(err)
	}
	if int64(stream.Len()) != size {
		t.Errorf("%d bytes, %d announced", stream.Len(), size)
	}
	to := t.TempDir()
	if err := unpack(bytes.NewReader(stream.Bytes()), to); err != nil {
		t.Fatal(err)
	}
	for name, want := range content {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	for _, at := range []int{0, 3, 6, 40, stream.Len() / 2, stream.Len() - 3} {
		damaged := bytes.Clone(stream.Bytes())
		damaged[at] ^= 1
		if unpack(bytes.NewReader(damaged), t.TempDir()) == nil && !sameFiles(t, damaged, content) {
			t.Errorf("a flipped bit at %d is not found", at)
		}
		if err := unpack(bytes.NewReader(stream.Bytes()[:at]), t.TempDir()); err == nil {
			t.Errorf("cut at %d: no error", at)
		}
	}
}

// sameFiles reports whether a damaged stream only has wrong file names, which the store detects later.
func sameFiles(t *testing.T, stream []byte, content map[string][]byte) bool {
	t.Helper()
	dir := t.TempDir()
	if err := unpack(bytes.NewReader(stream), dir); err != nil {
		return false
	}
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == len(content)
}

// A file name in a stream cannot lead out of the folder.
func TestCopiesStayInTheirFolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../x", "..", ".", "/x", "a/b", ""} {
		stream := append([]byte(packMagic), byte(len(name)))
		stream = append(append(stream, name...), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		dir := filepath.Join(t.TempDir(), "in")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unpack(bytes.NewReader(stream), dir); name != "" && err == nil {
			t.Errorf("%q: no error", name)
		}
		if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
			t.Errorf("%q: %v %v", name, entries, err)
		}
	}
}
