package gearman

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"broker/frontends/gearman/packet"
)

// request encodes a packet of a client.
func request(t packet.Type, fields ...string) []byte {
	return packet.Append(nil, packet.RequestMagic, t, fields...)
}

// answer encodes a packet of the server.
func answer(t packet.Type, fields ...string) []byte { return appendPacket(nil, t, fields...) }

// header is a header with any size.
func header(magic string, typ, size uint32) []byte {
	b := binary.BigEndian.AppendUint32([]byte(magic), typ)
	return binary.BigEndian.AppendUint32(b, size)
}

// read decodes all of in and formats the result, one message a line.
func read(in []byte, maxBody int) (log string, used int) {
	var m message
	var b strings.Builder
	for {
		n, err := decode(in[used:], maxBody, &m)
		used += n
		switch {
		case err != nil:
			fmt.Fprintf(&b, "error %q %q text=%v lost=%v\n", err.code, err.message, err.text, err.lost)
			if err.lost {
				return b.String(), used
			}
		case n == 0:
			return b.String(), used
		case m.text:
			fmt.Fprintf(&b, "line %q\n", m.line)
		default:
			fmt.Fprintf(&b, "%s %q\n", m.typ.Layout().Name, m.args[:fieldsOf(m.typ)])
		}
	}
}

func fieldsOf(t packet.Type) int {
	if t.Layout().Request {
		return t.Layout().Fields
	}
	return 0
}

func TestDecode(t *testing.T) {
	t.Parallel()
	const lost = "lost=true\n"
	cases := map[string]struct {
		in   []byte
		want string
		left int
	}{
		"nothing":        {nil, "", 0},
		"half a magic":   {[]byte("\x00RE"), "", 3},
		"half a header":  {request(packet.GrabJob)[:11], "", 11},
		"half a payload": {request(packet.CanDo, "fun")[:14], "", 14},
		"one field":      {request(packet.CanDo, "fun"), `CAN_DO ["fun"]` + "\n", 0},
		"empty field":    {request(packet.CanDo, ""), `CAN_DO [""]` + "\n", 0},
		"three fields": {
			request(packet.SubmitJobBg, "f", "u", "d\x00ata"), `SUBMIT_JOB_BG ["f" "u" "d\x00ata"]` + "\n", 0,
		},
		"eight fields": {
			request(packet.SubmitJobSched, "f", "u", "1", "2", "3", "4", "5", "d"),
			`SUBMIT_JOB_SCHED ["f" "u" "1" "2" "3" "4" "5" "d"]` + "\n", 0,
		},
		"payload of no use": {request(packet.GrabJob, "junk"), "GRAB_JOB []\n", 0},
		"no request":        {request(packet.StatusRes, "x"), "STATUS_RES []\n", 0},
		"two at once": {
			append(request(packet.GrabJob), request(packet.PreSleep)...), "GRAB_JOB []\nPRE_SLEEP []\n", 0,
		},
		"line":             {[]byte("status\n"), "line \"status\"\n", 0},
		"line with CR":     {[]byte("status\r\nver"), "line \"status\"\n", 3},
		"only one CR goes": {[]byte("status\r\r\n"), "line \"status\\r\"\n", 0},
		"empty line":       {[]byte("\n"), "line \"\"\n", 0},
		"line, packet, line": {
			append(append([]byte("a\n"), request(packet.EchoReq, "x")...), "b\n"...),
			"line \"a\"\nECHO_REQ [\"x\"]\nline \"b\"\n", 0,
		},
		"answer magic": {
			append(answer(packet.EchoReq, "x"), "a\n"...),
			"error \"INVALID_MAGIC\" \"Request magic expected\" text=false lost=false\nline \"a\"\n", 0,
		},
		"bad magic": {
			[]byte("\x00REX"), "error \"INVALID_MAGIC\" \"Request magic expected\" text=false " + lost, 4,
		},
		"bad magic, two bytes": {
			[]byte("\x00X"), "error \"INVALID_MAGIC\" \"Request magic expected\" text=false " + lost, 2,
		},
		"type 0": {
			header(packet.RequestMagic, 0, 0), "error \"INVALID_COMMAND\" \"Command not expected\" text=false " + lost,
			12,
		},
		"type 43": {
			header(packet.RequestMagic, 43, 0), "error \"INVALID_COMMAND\" \"Command not expected\" text=false " + lost,
			12,
		},
		"type above the sign": {
			header(packet.RequestMagic, 0x80000001, 0),
			"error \"INVALID_COMMAND\" \"Command not expected\" text=false " + lost, 12,
		},
		"too few fields": {
			request(packet.SubmitJob, "f", "u"),
			"error \"INVALID_ARGUMENTS\" \"Too few arguments for SUBMIT_JOB\" text=false " + lost, 15,
		},
		"size before its bytes": {
			header(packet.RequestMagic, 7, 0xffffffff),
			"error \"ARGUMENT_TOO_LARGE\" \"Workload too large\" text=false " + lost, 12,
		},
		"workload at the limit": {
			request(packet.EchoReq, strings.Repeat("x", 100)), "ECHO_REQ [\"" + strings.Repeat("x", 100) + "\"]\n", 0,
		},
		"workload over it": {
			request(packet.EchoReq, strings.Repeat("x", 101)),
			"error \"ARGUMENT_TOO_LARGE\" \"Workload too large\" text=false " + lost, 113,
		},
		"workload to come": {append(header(packet.RequestMagic, 18, 104), "f\x00u\x00"...), "", 16},
		"over it to come": {
			append(header(packet.RequestMagic, 18, 105), "f\x00u\x00"...),
			"error \"ARGUMENT_TOO_LARGE\" \"Workload too large\" text=false " + lost, 16,
		},
		"over it, not yet known": {append(header(packet.RequestMagic, 18, 105), "f\x00u"...), "", 15},
		"long name, so within":   {append(header(packet.RequestMagic, 18, 105), "ff\x00u\x00"...), "", 17},
		"one field over it": {
			header(packet.RequestMagic, 1, 101),
			"error \"ARGUMENT_TOO_LARGE\" \"Workload too large\" text=false " + lost, 12,
		},
		"payload without use": {header(packet.RequestMagic, 9, 101), "", 12},
		"far over, no handle": {append(header(packet.RequestMagic, 13, 1<<20), "H:host:1"...), "", 20},
		"far over, handle": {
			append(header(packet.RequestMagic, 13, 1<<20), "H:host:1\x00"...),
			"error \"ARGUMENT_TOO_LARGE\" \"Result too large\" text=false " + lost, 21,
		},
		"far over, never one": {
			append(header(packet.RequestMagic, 13, 1<<20), strings.Repeat("x", 64)...),
			"error \"ARGUMENT_TOO_LARGE\" \"Result too large\" text=false " + lost, 76,
		},
		// its data is a hundred bytes
		"result to come": {append(header(packet.RequestMagic, 13, 102), "x\x00"...), "", 14},
		"line too long": {
			bytes.Repeat([]byte("x"), maxLineBytes), "error \"UNKNOWN_COMMAND\" \"Line+too+long\" text=true " + lost,
			maxLineBytes,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, used := read(c.in, 100)
			if got != c.want || len(c.in)-used != c.left {
				t.Errorf("got %q, %d left; want %q, %d left", got, len(c.in)-used, c.want, c.left)
			}
		})
	}
}

func TestLeadingNumber(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]uint32{
		"": 0, "7": 7, " 7": 7, "\n\r\t\v\f7": 7, "+5": 5, " +5": 5, "+ 5": 0, "++5": 0,
		"12x": 12, "x": 0, "-1": 0, "4294967295": 4294967295,
		"4294967296": 4294967295, "99999999999999999999999999": 4294967295,
	} {
		if got := leadingNumber([]byte(in)); got != want {
			t.Errorf("%q: got %d, want %d", in, got, want)
		}
	}
}

// FuzzDecode: input in pieces decodes like the whole input, slices stay within it, and requests are complete.
func FuzzDecode(f *testing.F) {
	f.Add(append(request(packet.SubmitJob, "f", "u", "data"), "status\r\n"...), uint8(3))
	f.Add(append(answer(packet.EchoReq, "x"),
		request(packet.SubmitJobSched, "f", "u", "1", "2", "3", "4", "5", "d")...), uint8(1))
	f.Add(header(packet.RequestMagic, 0x80000000, 7), uint8(5))
	f.Add([]byte("\x00RE"), uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		const maxBody = 64
		whole, used := read(in, maxBody)
		var b strings.Builder
		at := 0
		for have := 0; have < len(in) && !strings.Contains(b.String(), "lost=true"); {
			have = min(len(in), have+1+int(step))
			got, n := read(in[at:have], maxBody)
			b.WriteString(got)
			at += n
		}
		if b.String() != whole || at != used {
			t.Fatalf("whole: %d %s\nin pieces: %d %s", used, whole, at, b.String())
		}
		encodeAgain(t, in)
	})
}

// encodeAgain checks that encoding the fields of the first packet of in restores its bytes.
func encodeAgain(t *testing.T, in []byte) {
	t.Helper()
	var m message
	n, err := decode(in, 1<<20, &m)
	if err != nil || n == 0 || m.text || fieldsOf(m.typ) == 0 {
		return
	}
	got := appendPacket(nil, m.typ, m.args[:fieldsOf(m.typ)]...)
	if !bytes.Equal(got[4:], in[4:n]) {
		t.Fatalf("%q encodes to %q", in[:n], got)
	}
}

// A packet that arrives byte by byte does not allocate. Each byte searches at most the fields before the workload.
func TestPacketInPiecesDoesNotAllocate(t *testing.T) {
	const maxBody = 1 << 20
	in := request(packet.SubmitJobBg, "f", strings.Repeat("u", 60), strings.Repeat("x", maxBody))
	const pieces, ofOthers = 20_000, 10 // the runtime allocates too now and then
	var m message
	allocs := testing.AllocsPerRun(1, func() {
		for have := range in[:pieces] {
			if n, err := decode(in[:have], maxBody, &m); n != 0 || err != nil {
				t.Fatalf("%d bytes: %d, %v", have, n, err)
			}
		}
	})
	if allocs > ofOthers {
		t.Errorf("%v allocations for %d pieces", allocs, pieces)
	}
	if n, err := decode(in, maxBody, &m); n != len(in) || err != nil {
		t.Errorf("whole: %d, %v", n, err)
	}
}

func BenchmarkDecode(b *testing.B) {
	in := request(packet.SubmitJobBg, "resize", "5f0f7ff0-5a36-4d0c-8a3e-6a4a3f2b8f3a", strings.Repeat("x", 256))
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	var m message
	for b.Loop() {
		if n, err := decode(in, 1<<20, &m); n != len(in) || err != nil {
			b.Fatal(n, err)
		}
	}
}
