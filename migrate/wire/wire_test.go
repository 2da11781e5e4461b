package wire_test

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"

	"broker/frontends/gearman/packet"
	"broker/migrate/wire"
)

func reader(s string) *bufio.Reader { return bufio.NewReader(strings.NewReader(s)) }

// TestHelloProvesThePassword has hashes that sha256sum computed: of the password and the salt, hashed i times.
func TestHelloProvesThePassword(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		greeting, password string
		want               string
		secret             bool
	}{
		"no password": {`HI {"v":2}`, "unused", `HELLO {"v":2,"wid":"w"}`, false},
		"one round": {
			`HI {"v":2,"i":1,"s":"abc123"}`, "secret",
			`HELLO {"pwdhash":"42416b7fc9a656af2a2e9d09157317bb2ccfdd4a3717d6847836e480f8418b48","v":2,"wid":"w"}`,
			true,
		},
		"three rounds": {
			`HI {"v":2,"i":3,"s":"abc123"}`, "secret",
			`HELLO {"pwdhash":"1d5c7bb74ac1a4fd5f169cd5b7d9ae00a06c69af0b7ce12a7c3dffb9f5914c40","v":2,"wid":"w"}`,
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line, secret, err := wire.Hello(c.greeting, c.password, map[string]any{"wid": "w", "pwdhash": "of another"})
			if err != nil || line != c.want || secret != c.secret {
				t.Errorf("%s, password %v, error %v\nwant %s", line, secret, err, c.want)
			}
		})
	}
}

func TestGreetingsThatAreNotFaktorys(t *testing.T) {
	t.Parallel()
	for _, greeting := range []string{"", "HI", "HI x", "PONG", `HI {"i":1000000000,"s":"x"}`} {
		if line, _, err := wire.Hello(greeting, "secret", nil); !errors.Is(err, wire.ErrNotFaktory) {
			t.Errorf("%q is answered with %q, error %v", greeting, line, err)
		}
	}
}

func TestRepliesAreRead(t *testing.T) {
	t.Parallel()
	words, data, err := wire.ReadBeanstalk(reader("RESERVED 7 3\r\na\nb\r\nOK"), 3)
	if err != nil || strings.Join(words, " ") != "RESERVED 7 3" || string(data) != "a\nb" {
		t.Errorf("words %q, data %q, error %v", words, data, err)
	}
	sent := packet.Append(nil, packet.AnswerMagic, packet.JobAssign, "H:1", "resize", "data")
	p, err := wire.ReadPacket(bufio.NewReader(bytes.NewReader(sent)), packet.AnswerMagic, 100)
	if err != nil || p.Type() != packet.JobAssign || string(p.Arg(1)) != "resize" || p.Arg(3) != nil {
		t.Errorf("packet %q, error %v", p, err)
	}
}

// TestLimitsHoldBeforeMemoryIsUsed has replies that announce more than the limit, and one that ends early.
func TestLimitsHoldBeforeMemoryIsUsed(t *testing.T) {
	t.Parallel()
	beanstalk := func(in *bufio.Reader) error { _, _, err := wire.ReadBeanstalk(in, 10); return err }
	gearman := func(in *bufio.Reader) error { _, err := wire.ReadPacket(in, packet.AnswerMagic, 10); return err }
	for _, c := range []struct {
		read func(*bufio.Reader) error
		in   string
		want error
	}{
		{beanstalk, "OK 11\r\n", wire.ErrFraming},
		{beanstalk, "OK -1\r\n", wire.ErrFraming},
		{beanstalk, "\r\n", wire.ErrFraming},
		{gearman, "\x00RES\x00\x00\x00\x0b\x00\x00\x00\x0b", wire.ErrFraming},
		{gearman, "\x00REQ\x00\x00\x00\x0b\x00\x00\x00\x00", wire.ErrFraming},
	} {
		if err := c.read(reader(c.in)); !errors.Is(err, c.want) {
			t.Errorf("%.40q: error %v, want %v", c.in, err, c.want)
		}
	}
}
