package frontends_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"broker/core"
)

// A reader finds the same stories in the same files of every protocol.
func TestFrontendsHaveTheSameFiles(t *testing.T) {
	t.Parallel()
	files := []string{"frontend.go", "wire.go", "commands.go", "session.go", "mapping.go", "errors.go"}
	for _, protocol := range core.ProtocolNames() {
		if protocol == core.HTTP.String() {
			continue // in operate
		}
		doc, err := os.ReadFile(filepath.Join(protocol, "doc.go"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, file := range files {
			if _, err := os.Stat(filepath.Join(protocol, file)); err != nil && !strings.Contains(string(doc), file) {
				t.Errorf("%s has no %s, and its doc.go does not say why", protocol, file)
			}
		}
	}
}
