package torture_test

import (
	"fmt"
	"net"
	"testing"

	"broker/integration/harness"
)

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

// dial opens a raw connection for the duration of the test.
func dial(t testing.TB, address string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, harness.Patience)
	check(t, err)
	t.Cleanup(func() { _ = c.Close() }) // it may be gone
	return c
}
