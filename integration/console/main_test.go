package console

import (
	"os"
	"testing"

	"broker/integration/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
