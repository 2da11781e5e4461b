package integration_test

import (
	"os"
	"testing"

	"broker/integration/harness"
)

func TestMain(m *testing.M) {
	harness.MostlyWait()
	os.Exit(harness.Main(m))
}
