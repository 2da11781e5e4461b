package core

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestHandlesComeBackAsTheirSeq(t *testing.T) {
	t.Parallel()
	h := NewHandleFormat("H:host")
	for _, seq := range []uint64{1, 42, math.MaxUint64} {
		handle := h.Append(nil, seq)
		if got, ok := h.Parse(handle); !ok || got != seq {
			t.Errorf("%s parses to %d, %v", handle, got, ok)
		}
	}
	for _, bad := range []string{
		"", "H:host:", "H:host:0", "H:host:01", "H:host:-1", "H:host:1 ", "H:host:18446744073709551616",
		"H:host:99999999999999999999999", "H:other:1", "host:1", "H:host:1\x00", ":1", "1", strings.Repeat("x", 200),
	} {
		if seq, ok := h.Parse([]byte(bad)); ok {
			t.Errorf("%q parses to %d", bad, seq)
		}
	}
	if got := string(NewHandleFormat("X").Append(nil, 7)); got != "X:7" {
		t.Errorf("with a prefix: %s", got)
	}
	if got := string(HandleFormat{}.Append(nil, 7)); got != "H::7" {
		t.Errorf("zero value: %s", got)
	}
	if got := NewHandleFormat("H:"+strings.Repeat("h", 100)).Append(nil, math.MaxUint64); len(got) > 63 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// A prefix may be as long as gearmand allows. Numbers stay whole, so that no two jobs have the same handle.
func TestHandlesWithALongPrefixKeepTheirDigits(t *testing.T) {
	t.Parallel()
	const longest = "an:0123456789-0123456789-0123456789-0123456789-0123456789-01:34" // 63 bytes
	for size := 1; size <= len(longest); size++ {
		h := NewHandleFormat(longest[:size])
		for _, seq := range []uint64{1, 9, 10, 99, 100, 1234567, 1e19, math.MaxUint64} {
			number := strconv.FormatUint(seq, 10)
			want := longest[:min(size, 62-len(number))] + ":" + number
			handle := h.Append([]byte("before"), seq)[len("before"):]
			if string(handle) != want {
				t.Errorf("prefix of %d bytes: %s, want %s", size, handle, want)
			}
			if got, ok := h.Parse(handle); !ok || got != seq {
				t.Errorf("%s parses to %d, %v", handle, got, ok)
			}
		}
	}
	h := NewHandleFormat(longest[:60])
	for _, bad := range []string{
		longest[:60] + ":100", longest[:59] + ":1", longest[:2] + ":5", longest[:59] + "x:10",
		longest[:61] + ":1", strings.Repeat("x", 63), strings.Repeat("x", 61) + ":1", longest[:58] + ":0123",
	} {
		if seq, ok := h.Parse([]byte(bad)); ok {
			t.Errorf("%q parses to %d", bad, seq)
		}
	}
}

func FuzzHandleFormat(f *testing.F) {
	f.Add("H:host", []byte("H:host:12"))
	f.Fuzz(func(t *testing.T, prefix string, handle []byte) {
		h := NewHandleFormat(prefix)
		if seq, ok := h.Parse(handle); ok && string(h.Append(nil, seq)) != string(handle) {
			t.Errorf("prefix %q: %q parses to %d, whose handle is %q", prefix, handle, seq, h.Append(nil, seq))
		}
	})
}
