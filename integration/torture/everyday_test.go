//go:build !nightly

package torture_test

import (
	"os"
	"testing"

	"broker/integration/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// stops is how often the process is stopped and continued.
const stops = 2

// rounds is how often the broker is killed.
func rounds(testing.TB) int { return 5 }
