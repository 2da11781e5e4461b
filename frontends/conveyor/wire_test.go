package conveyor

import (
	"bytes"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

func TestEnvelopeFields(t *testing.T) {
	t.Parallel()
	m := message{
		uuid: "u", typ: "T", queue: "q", payload: "p",
		runAt: time.Unix(1_900_000_000, 0), retry: 2, maxRetries: 5,
	}
	e, err := parseEnvelope([]byte(m.encode()))
	if err != nil {
		t.Fatal(err)
	}
	got := message{
		uuid: e.uuid, typ: e.typ, queue: e.queue, payload: string(e.payload),
		runAt: e.runAt, retry: uint64(e.retry), maxRetries: uint64(e.maxRetries),
	}
	if got != m {
		t.Errorf("got %+v, want %+v", got, m)
	}
}

func TestRetryKeepsTheOrderOfFields(t *testing.T) {
	t.Parallel()
	m := message{uuid: "u", maxRetries: 5}
	for _, retry := range []uint64{1, 300, 2, 0} {
		raw := withRetry([]byte(m.encode()), uint32(retry))
		m.retry = retry
		if string(raw) != m.encode() {
			t.Errorf("retry %d: got %q, want %q", retry, raw, m.encode())
		}
	}
}

func TestEncodedJobContainsItsChangedBody(t *testing.T) {
	t.Parallel()
	e, err := parseEnvelope([]byte(message{uuid: "u", payload: "old", retry: 1}.encode()))
	if err != nil {
		t.Fatal(err)
	}
	raw, ok := encodeRaw(e.attributes(), []byte("a longer one"))
	if want := (message{uuid: "u", payload: "a longer one", retry: 1}).encode(); !ok || string(raw) != want {
		t.Errorf("got %q, want %q", raw, want)
	}
}

func TestMalformedJobsAreRefused(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"x", "\x0a\x05u", "\x2a\x02\x08", "\x2a\x02\x10\xff", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	} {
		if _, err := parseEnvelope([]byte(raw)); err == nil {
			t.Errorf("%q was read", raw)
		}
	}
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(message{uuid: "u", typ: "T", queue: "q", payload: "p", retry: 1}.encode()), []byte("other"))
	f.Add([]byte("\x22\x80\x00\x22\x01x"), []byte("x"))
	f.Fuzz(func(t *testing.T, raw, other []byte) {
		e, err := parseEnvelope(raw)
		if err != nil {
			return
		}
		back, ok := encodeRaw(e.attributes(), e.payload)
		if !ok || !bytes.Equal(back, raw) {
			t.Fatalf("%q came back as %q", raw, back)
		}
		changed, ok := encodeRaw(e.attributes(), other)
		if !ok {
			t.Fatal("attributes cannot be read")
		}
		if again, err := parseEnvelope(changed); err != nil ||
			!bytes.Equal(again.payload, other) && len(other) != len(e.payload) {
			t.Fatalf("with another payload: %q, %v", changed, err)
		}
	})
}

func FuzzAttributes(f *testing.F) {
	f.Add([]byte{attributesVersion, 1, 'a', 1, 'b', 3, 'c'}, []byte("p"))
	f.Fuzz(func(t *testing.T, attributes, payload []byte) {
		if raw, ok := encodeRaw(attributes, payload); ok && len(raw) > len(attributes)+len(payload)+20 {
			t.Fatalf("%d bytes of %d", len(raw), len(attributes)+len(payload))
		}
	})
}

func TestTimestamps(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int64]time.Time{
		0: time.Unix(0, 0), 1_900_000_000: time.Unix(1_900_000_000, 0), -1: {}, time.Time{}.Unix(): {},
	} {
		b := protowire.AppendVarint(protowire.AppendTag(nil, fieldSeconds, protowire.VarintType), uint64(seconds))
		if got, err := parseTimestamp(b); err != nil || !got.Equal(want) {
			t.Errorf("%d: got %v, %v, want %v", seconds, got, err, want)
		}
	}
	for _, seconds := range []int64{253402300800, time.Time{}.Unix() - 1} {
		b := protowire.AppendVarint(protowire.AppendTag(nil, fieldSeconds, protowire.VarintType), uint64(seconds))
		if _, err := parseTimestamp(b); err == nil {
			t.Errorf("%d is accepted", seconds)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]key{
		"conv:queue:a.B":               {keyQueue, "conv", "a.B"},
		"conv:job:u":                   {keyJob, "conv", "u"},
		"conv:job:u:children":          {keyChildren, "conv", "u"},
		"conv:job:u:onComplete":        {keyHeirs, "conv", "u"},
		"conv:job:u:active":            {keyOpen, "conv", "u"},
		"conv:scheduled":               {keyScheduled, "conv", ""},
		"conv:failed":                  {keyFailed, "conv", ""},
		"conv:jobs:active":             {keyActiveJobs, "conv", ""},
		"conv:worker:active:w":         {keyWorkerJobs, "conv", "w"},
		"conv:workers:active":          {keyWorkers, "conv", ""},
		"n:queues:active":              {keyQueues, "n", ""},
		"n:hist:success:2030-01-01_00": {keyCounter, "n", "hist:success:2030-01-01_00"},
		"n:w_hist:2030":                {keyCounter, "n", "w_hist:2030"},
		"n:events":                     {keyEvents, "n", ""},
		"conv:queue:":                  {},
		"conv:other":                   {},
		":queue:a":                     {},
		"plain":                        {},
		"":                             {},
	} {
		if got := parseKey(text); got != want {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
}
