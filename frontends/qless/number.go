package qless

import (
	"math"
	"strconv"
	"strings"
)

// Numbers are Lua numbers: 64-bit floats, parsed like C's strtod and written with 14 significant digits.

// parseNumber is Lua's tonumber for a string.
func parseNumber(s string) (float64, bool) {
	s = strings.Trim(s, " \t\n\v\f\r")
	if s == "" || strings.ContainsRune(s, '_') {
		return 0, false
	}
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 {
		return 0, false
	}
	if strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X") {
		if !strings.ContainsAny(digits, "pP") {
			s += "p0"
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// appendNumber writes f with at most 14 significant digits, like C's %.14g.
func appendNumber(b []byte, f float64) []byte {
	if f == math.Trunc(f) && math.Abs(f) < 1e14 && (f != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(b, int64(f), 10)
	}
	return appendFloat(b, f, 14)
}

// appendFloat writes f with the given number of significant digits, like C's %g.
func appendFloat(b []byte, f float64, digits int) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	case math.IsNaN(f):
		return append(b, "-nan"...)
	}
	return strconv.AppendFloat(b, f, 'g', digits, 64)
}

func formatNumber(f float64) string { return string(appendNumber(nil, f)) }

// integer truncates f, as Redis does in replies.
func integer(f float64) int64 {
	switch {
	case math.IsNaN(f) || f <= math.MinInt64:
		return math.MinInt64
	case f >= math.MaxInt64:
		return math.MaxInt64
	}
	return int64(f)
}

// finite refuses infinite numbers and NaN, which cannot order a list and do not exist in JSON.
func finite(all ...float64) error {
	for _, f := range all {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return errFloat
		}
	}
	return nil
}

// wholeNumber converts f to an argument of a Redis command that needs integers.
func wholeNumber(f float64) (int, bool) {
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 || f == 0 && math.Signbit(f) {
		return 0, false
	}
	return int(f), true
}
