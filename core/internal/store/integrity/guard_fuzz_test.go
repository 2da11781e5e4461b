package integrity

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/record"
)

// FuzzGuard: no input makes the parser of GUARD panic, and accepted input is written and read back unchanged.
func FuzzGuard(f *testing.F) {
	f.Add("broker store guard 1\nmanifest MANIFEST-000031 4711 1a2b3c4d\nlog 45 16777101\nlog 46\n", true)
	f.Add("broker store guard 2\n", true)
	f.Add("broker store guard 1\nlog 45 -1\n", true) // no length
	f.Add("sum 00000000", false)
	f.Fuzz(func(t *testing.T, text string, sum bool) {
		if sum {
			text += fmt.Sprintf("sum %08x\n", crc32.Checksum([]byte(text), castagnoli))
		}
		var g, again Guard
		if g.parse(text) != nil {
			return
		}
		if err := again.parse(g.text()); err != nil {
			t.Fatalf("%q, written as %q: %v", text, g.text(), err)
		}
		if !reflect.DeepEqual(g.manifests, again.manifests) || !reflect.DeepEqual(g.logs, again.logs) {
			t.Fatalf("%q, written as %q", text, g.text())
		}
	})
}

// FuzzManifest: no bytes, in or outside of a record, make the reader of manifests panic.
func FuzzManifest(f *testing.F) {
	f.Add([]byte{}, []byte("\x01\x03abc\x02\x07"))
	f.Add([]byte("\x02\x05"), []byte("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		_, _ = neededLogs(bytes.NewReader(first)) // any result will do
		var manifest bytes.Buffer
		w := record.NewWriter(&manifest)
		for _, r := range [][]byte{first, second} {
			if _, err := w.WriteRecord(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		oldest, err := neededLogs(&manifest)
		if len(second) == 2 && second[0] == tagOldestLog && second[1] < 0x80 && err == nil &&
			oldest != uint64(second[1]) {
			t.Errorf("%x, then %x: log %d", first, second, oldest)
		}
	})
}
