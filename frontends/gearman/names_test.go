package gearman

import (
	"bytes"
	"fmt"
	"testing"

	"broker/core"
	"broker/frontends"
)

func TestConnectionsCacheFewShortNames(t *testing.T) {
	t.Parallel()
	var cache names
	o := &Options{Options: frontends.Options{Namespace: "ns:"}}
	long := bytes.Repeat([]byte("x"), core.MaxQueueName-len(o.Namespace)+1)
	if n := cache.of(long, o); n.valid() || len(cache.all) != 0 || cache.last != nil {
		t.Errorf("a name of %d bytes is valid: %v, and %d names are cached", len(long), n.valid(), len(cache.all))
	}
	if n := cache.of(long[1:], o); !n.valid() || cache.of(long[1:], o) != n {
		t.Error("the longest name is not cached")
	}
	for i := range 3 * maxNames {
		cache.of([]byte(fmt.Sprint("function-", i)), o)
		if len(cache.all) > maxNames {
			t.Fatalf("%d names are cached", len(cache.all))
		}
	}
}
