package cluster_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"broker/integration/server"
)

// greetingMagic begins a greeting.
const greetingMagic = "bkr1"

// greetings between nodes, as the built program sends them.
type greeting struct {
	Kind    string `json:"kind"`
	From    string `json:"from"`
	To      string `json:"to"`
	Reads   int    `json:"reads"`
	Needs   int    `json:"needs"`
	Version string `json:"version"`
}

// greetingAnswer is the answer to a greeting.
type greetingAnswer struct {
	Error  string `json:"error,omitempty"`
	TooOld bool   `json:"too_old,omitempty"`
}

func sendFrame(w io.Writer, prefix string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32([]byte(prefix), uint32(len(body))), body...))
	return err
}

func receiveFrame(r io.Reader, prefix int, v any) error {
	head := make([]byte, prefix+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[prefix:]))
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	return json.Unmarshal(body, v)
}

// A node of a later release, which no longer works with this program, is refused with a reason that both sides log.
func TestNodeOfAMuchLaterReleaseIsRefused(t *testing.T) {
	t.Parallel()
	c := start(t)
	address := strings.TrimPrefix(strings.Split(c.list, ",")[0], "n1=")
	conn, err := net.Dial("tcp", address)
	check(t, err)
	defer func() { _ = conn.Close() }() // the test is over
	check(t, sendFrame(conn, greetingMagic,
		greeting{Kind: "call", From: "n2", To: "n1", Reads: 9, Needs: 8, Version: "v9.0.0"}))
	var a greetingAnswer
	check(t, receiveFrame(conn, 0, &a))
	const want = "is too old for node n2 (v9.0.0), which needs format 8: upgrade n1"
	if !a.TooOld || !strings.Contains(a.Error, want) {
		t.Errorf("%+v, want %q", a, want)
	}
	c.logs(0, want)
}

// A node whose program is too old for the others stops at its start and says so, whether it is new or was a member.
func TestNodeWithATooOldProgramStops(t *testing.T) {
	t.Parallel()
	c := start(t)
	if code := terminate(t, c.nodes[2]); code != 0 {
		t.Errorf("exit code %d", code)
	}
	const why = "the program of node n3 (v1) is too old for node n2 (v9.0.0), which needs format 8: upgrade n3"
	later := laterNode(t, why)
	members := strings.Split(c.list, ",")
	refusedNode(t, "", []string{"--node", "n3", "--cluster", members[0] + ",n2=" + later + "," + members[2]}, why)

	terminate(t, c.nodes[1])
	ln, err := net.Listen("tcp", strings.TrimPrefix(members[1], "n2="))
	check(t, err)
	serveLaterNode(t, ln, why)
	refusedNode(t, c.nodes[2].Data, []string{"--node", "n3", "--cluster", c.list}, why)
	check(t, ln.Close())
	check(t, c.nodes[1].Spawn())
	c.restart(2)
}

// laterNode is a node that refuses all others.
func laterNode(t *testing.T, why string) (address string) {
	t.Helper()
	address, err := server.FreeAddr()
	check(t, err)
	ln, err := net.Listen("tcp", address)
	check(t, err)
	serveLaterNode(t, ln, why)
	return address
}

func serveLaterNode(t *testing.T, ln net.Listener, why string) {
	t.Helper()
	t.Cleanup(func() { _ = ln.Close() })
	go func() { // ends with the test
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			var g greeting
			if receiveFrame(conn, len(greetingMagic), &g) == nil && (g.Reads == 0 || g.Needs == 0 || g.Version == "") {
				why = fmt.Sprintf("the greeting does not say what the program reads: %+v", g)
			}
			_ = sendFrame(conn, "", greetingAnswer{Error: why, TooOld: true}) // it may have gone
			_ = conn.Close()
		}
	}()
}
