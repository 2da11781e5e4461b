package torture_test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"broker/integration/harness"
)

func TestMain(m *testing.M) {
	address := os.Getenv(bystanderOf)
	if address == "" {
		os.Exit(harness.Main(m))
	}
	fmt.Fprintln(os.Stderr, "bystander:", standBy(address))
	os.Exit(1)
}

// shortRounds is how often the broker is killed among the ordinary tests.
const shortRounds = 5

// rounds is how often the broker is killed.
func rounds(t testing.TB) int {
	t.Helper()
	text := os.Getenv("TORTURE_ROUNDS")
	if text == "" {
		return shortRounds
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("TORTURE_ROUNDS is %q", text)
	}
	return n
}

// scale is n in the short form and much more in the long one.
func scale(t testing.TB, n, long int) int {
	t.Helper()
	if rounds(t) > shortRounds {
		return long
	}
	return n
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want); g != w {
		t.Fatalf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// dial is a bare connection that lasts as long as the test.
func dial(t testing.TB, address string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, 10*time.Second)
	check(t, err)
	t.Cleanup(func() { _ = c.Close() }) // it may be gone
	return c
}
