//go:build nightly

package torture_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"broker/integration/harness"
)

func TestMain(m *testing.M) {
	address := os.Getenv(bystanderOf)
	if address == "" {
		os.Exit(harness.Main(m))
	}
	fmt.Fprintln(os.Stderr, "bystander:", runBystander(address))
	os.Exit(1)
}

// stops is how often the process is stopped and continued.
const stops = 10

// usualRounds is how often the broker is killed unless TORTURE_ROUNDS says otherwise.
const usualRounds = 100

// rounds is how often the broker is killed.
func rounds(t testing.TB) int {
	t.Helper()
	text := os.Getenv("TORTURE_ROUNDS")
	if text == "" {
		return usualRounds
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("TORTURE_ROUNDS is %q, not a positive number", text)
	}
	return n
}
