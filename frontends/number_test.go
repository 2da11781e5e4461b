package frontends

import (
	"math"
	"testing"
)

func TestNumbersHaveDigitsOnlyAndALimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    string
		limit uint64
		want  uint64
		ok    bool
	}{
		{"0", 0, 0, true},
		{"007", 255, 7, true},
		{"255", 255, 255, true},
		{"256", 255, 0, false},
		{"300", 255, 0, false},
		{"+5", 255, 0, false},
		{"-5", 255, 0, false},
		{"1x", 255, 0, false},
		{" 1", 255, 0, false},
		{"", 255, 0, false},
		{"9", 3, 0, false},
		{"4294967295", 1<<32 - 1, 1<<32 - 1, true},
		{"4294967296", 1<<32 - 1, 0, false},
		{"18446744073709551615", math.MaxUint64, math.MaxUint64, true},
		{"18446744073709551616", math.MaxUint64, 0, false},
	} {
		if n, ok := ParseUint([]byte(c.in), c.limit); ok != c.ok || n != c.want {
			t.Errorf("number %q up to %d: got %d, %v", c.in, c.limit, n, ok)
		}
	}
}
