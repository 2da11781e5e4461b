package slot

import (
	"slices"
	"testing"
)

func TestNumbersOfRemovedValuesAreReused(t *testing.T) {
	t.Parallel()
	a, b, c := "a", "b", "c"
	var m Map[string]
	first, second := m.Add(&a), m.Add(&b)
	if first != 1 || second != 2 || m.At(second) != &b {
		t.Fatalf("numbers %d and %d", first, second)
	}
	m.Remove(first)
	if got := slices.Collect(m.All()); m.Len() != 1 || m.At(first) != nil || !slices.Equal(got, []*string{&b}) {
		t.Fatalf("%d values, %v", m.Len(), got)
	}
	if n := m.Add(&c); n != first || m.Last() != 2 {
		t.Fatalf("number %d of %d, want the removed one", n, m.Last())
	}
	if got := slices.Collect(m.All()); !slices.Equal(got, []*string{&c, &b}) {
		t.Fatalf("values %v", got)
	}
}
