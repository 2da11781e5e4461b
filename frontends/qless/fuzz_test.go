package qless

import (
	"bytes"
	"errors"
	"regexp"
	"testing"

	"broker/frontends/frontendtest"
)

// addresses matches the parts of replies that differ between runs.
var addresses = regexp.MustCompile(`0x[0-9a-f]+`)

func FuzzSession(f *testing.F) {
	frontendtest.SplitFuzz{
		New:        plain,
		Stable:     func(replies []byte) []byte { return addresses.ReplaceAll(replies, nil) },
		WellFormed: func(replies []byte) bool { return bytes.IndexByte([]byte("+-:$*"), replies[0]) >= 0 },
	}.Fuzz(f,
		[]byte("PING\r\n"),
		append(request("EVAL", scriptStart, "0", "put", "1", "me", "q", "j", "K", "{}", "0"), request("MULTI")...),
	)
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,2.5e3,"x\u00e9\n\/"],"b":{"c":null,"d":true}}`, `[]`, `0x1F`, `-inf`, `"\ud83d\ude00"`, `[[[[`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := decode(text)
		if err != nil {
			return
		}
		once, err := encode(v)
		if errors.Is(err, errNotFinite) {
			return
		}
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", text, err)
		}
		back, err := decode(once)
		if err != nil {
			t.Fatalf("%q was written as %q: %v", text, once, err)
		}
		if again, err := encode(back); err != nil || len(again) != len(once) {
			t.Fatalf("%q was written as %q, then as %q (%v)", text, once, again, err)
		}
	})
}

func FuzzDocuments(f *testing.F) {
	j := &job{
		jid: "j", klass: "K", state: "failed", queue: "q", tags: []string{"a", "b"},
		failure: &failure{group: "g", message: "m"},
		history: []entry{{1, "put", queueItem("q")}}, holders: []holder{{"w", 2}}, tagged: []tagTime{{"a", 1}},
	}
	s := &statistics{retries: 1}
	s.wait.add(5)
	f.Add(j.encode())
	f.Add((&recurringJob{klass: "K", tags: []string{"t"}}).encode())
	f.Add(s.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if j, err := decodeJob("j", b); err == nil {
			if again := j.encode(); !bytes.Equal(again, b) {
				if back, err := decodeJob("j", again); err != nil || !bytes.Equal(back.encode(), again) {
					t.Fatalf("%x was written as %x (%v)", b, again, err)
				}
			}
		}
		if r, err := decodeRecurring("r", b); err == nil {
			if back, err := decodeRecurring("r", r.encode()); err != nil || back.jid != "r" {
				t.Fatalf("%x: %v", b, err)
			}
		}
		if s, err := decodeStatistics(b); err == nil {
			if _, err := decodeStatistics(s.encode()); err != nil {
				t.Fatalf("%x: %v", b, err)
			}
		}
	})
}

// decodeJob is the inverse of encode.
func decodeJob(jid string, b []byte) (*job, error) {
	d := newDecoder(b)
	j := &job{jid: jid, hasDocument: true}
	j.readDocument(d)
	return j, d.close()
}
