package replica

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDetachSaysWhatIsWrongWithAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(other, raftDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{
		filepath.Join(dir, "nosuch"): "there is no such folder",
		file:                         "it is not a folder",
		dir:                          "it has no folder raft/snapshots",
		other:                        "it has no folder raft/snapshots",
	} {
		want = folder + " is not the data folder of a node of a cluster: " + want
		if _, err := Detach(folder); err == nil || err.Error() != want {
			t.Errorf("%v, not %s", err, want)
		}
	}
}
