package store

import (
	"fmt"
	"os"
	"testing"

	"broker/core/internal/store/integrity"
	"broker/core/internal/store/storetest"
)

// testdata has a store of every format: formatN.tar.gz was written by a broker of format N, and formatN.txt lists its
// content. format2.tar.gz is of the first broker of format 2: jobs of three protocols in every state except blocked,
// from two runs; the second run ended with kill -9. It has no later additions to format 2, such as schedules, timelines
// and positions of entries.
func TestStoreOfEveryFormatIsRead(t *testing.T) {
	t.Parallel()
	for n := 1; n <= integrity.BaseFormat; n++ {
		t.Run(fmt.Sprint("format ", n), func(t *testing.T) {
			t.Parallel()
			name := fmt.Sprintf("testdata/format%d", n)
			disk := newDisk()
			if err := storetest.Unpack(disk, testDir, name+".tar.gz"); err != nil {
				t.Fatal(err)
			}
			if text := string(disk.contents(t,
				disk.PathJoin(testDir, integrity.FormatFile))); text != fmt.Sprintf("broker store, format %d\n", n) {
				t.Fatalf("FORMAT says %q", text)
			}
			want, err := os.ReadFile(name + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				s := mustOpen(t, disk)
				wantUpgraded(t, disk, s)
				wantSameLines(t, dumpStore(t, s), string(want))
				if r := check(t, s); len(r.Damage)+len(r.Orphans) > 0 {
					t.Error(r.Damage, r.Orphans)
				}
				mustClose(t, s)
			}
		})
	}
}
