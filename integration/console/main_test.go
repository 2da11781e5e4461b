package console

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"broker/integration/harness"
)

// leastParallel is how many tests run at once, also on two processors: they wait for the browser and for heartbeats.
const leastParallel = 4

func TestMain(m *testing.M) {
	if parallel := flag.Lookup("test.parallel"); parallel != nil {
		if n, err := strconv.Atoi(parallel.Value.String()); err == nil && n < leastParallel {
			_ = parallel.Value.Set(strconv.Itoa(leastParallel)) // a number
		}
	}
	code := harness.Main(m)
	endShared()
	os.Exit(code)
}
