package console

import (
	"os"
	"testing"

	"broker/integration/harness"
)

func TestMain(m *testing.M) {
	harness.MostlyWait()
	code := harness.Main(m)
	endShared()
	os.Exit(code)
}
