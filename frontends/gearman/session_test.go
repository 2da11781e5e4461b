package gearman

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
	"broker/frontends/gearman/packet"
)

// newMaker builds the front-end of a stage with options that the test changes.
func newMaker(change func(*Options)) frontendtest.Maker {
	return func(b core.Broker) frontends.Frontend {
		o := testOptions()
		o.MaxBodyBytes = 256 << 10
		if change != nil {
			change(&o)
		}
		return New(access.Unrestricted(b, core.Gearman), o)
	}
}

// encodeLine encodes a line of a transcript. A packet is its name and its fields, separated by bars:
//
//	SUBMIT_JOB resize|unique|data
//	RES WORK_COMPLETE H:host:1|result
//
// RES marks an answer that has the same name as a request. Any other line is text.
func encodeLine(text string) ([]byte, error) {
	line, fromServer := strings.CutPrefix(text, "RES ")
	name, rest, hasFields := strings.Cut(line, " ")
	for typ := packet.CanDo; typ < packet.NumTypes; typ++ {
		if typ.Layout().Name != name {
			continue
		}
		var fields []string
		if hasFields {
			for _, f := range strings.Split(rest, "|") {
				b, err := frontendtest.Unescape(f)
				if err != nil {
					return nil, err
				}
				fields = append(fields, string(b))
			}
		}
		if typ.Layout().Request && !fromServer {
			return request(typ, fields...), nil
		}
		return answer(typ, fields...), nil
	}
	return frontendtest.Unescape(text)
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	for dir, change := range map[string]func(*Options){
		"testdata":              nil,
		"testdata/retries":      func(o *Options) { o.JobRetries = 2 },
		"testdata/prefix":       func(o *Options) { o.Handles = core.NewHandleFormat("X") },
		"testdata/exceptions":   func(o *Options) { o.ExceptionsForAll = true },
		"testdata/namespace":    func(o *Options) { o.Namespace = "g." },
		"testdata/no_job_delay": func(o *Options) { o.NoJobDelay = time.Millisecond },
	} {
		frontendtest.Script{
			Stage:  func(t testing.TB) *frontendtest.Stage { return frontendtest.Open(t, newMaker(change)) },
			Encode: encodeLine,
		}.PlayAll(t, dir)
	}
}

// readPacket reads one packet from the server.
func readPacket(c *frontendtest.Client) (packet.Type, []string) {
	head := c.Read(packet.HeaderBytes)
	typ, size, _ := packet.Header(head, packet.AnswerMagic)
	return typ, strings.Split(string(c.Read(int(size))), "\x00")
}

func TestSuite(t *testing.T) {
	t.Parallel()
	frontendtest.Run(t, frontendtest.Dialect{
		New: newMaker(nil),
		SubmitRequest: func(n int, queue, body string) []byte {
			return request(packet.SubmitJobBg, queue, fmt.Sprintf("unique-%d", n), body)
		},
		SubmitReply: func(c *frontendtest.Client, _ int) {
			if typ, fields := readPacket(c); typ != packet.JobCreated {
				panic(fmt.Sprintf("packet %d %q, want JOB_CREATED", typ, fields))
			}
		},
		Lease: func(c *frontendtest.Client, queue string) (frontendtest.Leased, bool) {
			c.SendBytes(append(request(packet.CanDo, queue), request(packet.GrabJob)...))
			typ, fields := readPacket(c)
			if typ == packet.NoJob {
				return frontendtest.Leased{}, false
			}
			return frontendtest.Leased{ID: fields[0], Queue: fields[1], Body: strings.Join(fields[2:], "\x00")}, true
		},
		Complete: func(c *frontendtest.Client, job frontendtest.Leased) {
			c.SendBytes(request(packet.WorkComplete, job.ID, "result"))
		},
		Released:  true,
		Ping:      request(packet.EchoReq, "ping"),
		Pong:      func(c *frontendtest.Client) { c.WantBytes(answer(packet.EchoRes, "ping")) },
		Commands:  commandNames(),
		Exchanges: exchanges(),
		Garbage: [][]byte{
			header(packet.RequestMagic, 0, 0), header(packet.RequestMagic, 43, 4),
			header(packet.RequestMagic, 0x80000000, 0),
			header(packet.RequestMagic, 0xffffffff, 0xffffffff), header(packet.AnswerMagic, 1, 0), []byte("\x00BAD"),
			request(packet.SubmitJob, "f"), request(packet.SubmitJob),
			request(packet.GetStatus, strings.Repeat("x", 64)),
			request(packet.CanDoTimeout, "f", "99999999999999999999"),
			request(packet.SubmitJobEpoch, "f", "u", "99999999999999999999", ""),
			request(packet.WorkStatus, "H:host:1", "x", "99999999999999"),
			request(packet.SetClientID, strings.Repeat("x", 1000)),
			[]byte("a b c d e f g h\r\n"), []byte(strings.Repeat("x", 10_000)), []byte(" status\r\n"),
		},
		Oversize: header(packet.RequestMagic, uint32(packet.SubmitJobBg), 1<<31),
	})
}
