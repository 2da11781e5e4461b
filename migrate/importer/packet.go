package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"

	"broker/frontends/gearman/packet"
	"broker/migrate/wire"
)

// splitArgs splits the data of a packet into n arguments; the last one is the rest.
func splitArgs(p wire.Packet, n int) ([][]byte, error) {
	args := bytes.SplitN(p.Data(), []byte{0}, n)
	if len(args) != n {
		return nil, fmt.Errorf("packet %d with %d arguments in place of %d", p.Type(), len(args), n)
	}
	return args, nil
}

// gearmanConn is a connection to a Gearman server.
type gearmanConn struct {
	net.Conn

	r  *bufio.Reader
	mu sync.Mutex // guards w
	w  *bufio.Writer
}

func newGearmanConn(c net.Conn) *gearmanConn {
	return &gearmanConn{Conn: c, r: bufio.NewReaderSize(c, 64<<10), w: bufio.NewWriterSize(c, 64<<10)}
}

// queue adds a packet to the buffer that flush sends.
func (c *gearmanConn) queue(kind packet.Type, args ...[]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.w.Write(packet.Append(nil, packet.RequestMagic, kind, args...)) // flush returns the error
}

func (c *gearmanConn) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.w.Flush()
}

// refusal is the error that an ERROR packet reports.
func refusal(p wire.Packet) error {
	code, text, _ := strings.Cut(string(p.Data()), "\x00")
	return serverError(strings.TrimSpace(code + " " + text))
}

// read reads the next packet. An ERROR of the server is a serverError.
func (c *gearmanConn) read() (wire.Packet, error) {
	p, err := c.next()
	if err == nil && p.Type() == packet.Error {
		err = refusal(p)
	}
	return p, err
}

// next reads the next packet of any type.
func (c *gearmanConn) next() (wire.Packet, error) {
	p, err := wire.ReadPacket(c.r, packet.AnswerMagic, wire.MaxBody)
	if errors.Is(err, wire.ErrFraming) || err == nil && p.Type() == wire.Text {
		return nil, errors.New("the server does not speak Gearman")
	}
	return p, lost(err)
}

// expect reads the next packet, which must be of this kind.
func (c *gearmanConn) expect(kind packet.Type) (wire.Packet, error) {
	p, err := c.read()
	if err == nil && p.Type() != kind {
		err = fmt.Errorf("packet %d where %d was expected", p.Type(), kind)
	}
	return p, err
}

// await returns when the server has handled all packets so far. It echoes nothing, as a server may limit all bodies.
func (c *gearmanConn) await() error {
	c.queue(packet.EchoReq, nil)
	if err := c.flush(); err != nil {
		return err
	}
	_, err := c.expect(packet.EchoRes)
	return err
}

// text sends a text command and returns the lines of the answer.
func (c *gearmanConn) text(command string) ([]string, error) {
	if _, err := io.WriteString(c, command+"\n"); err != nil {
		return nil, err
	}
	var lines []string
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			return nil, lost(err)
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "." {
			return lines, nil
		}
		if strings.HasPrefix(line, "ERR") || strings.HasPrefix(line, "UNKNOWN_COMMAND") ||
			strings.HasPrefix(line, "-") {
			return nil, fmt.Errorf("%s: the server refused: %s", command, line)
		}
		lines = append(lines, line)
	}
}

// errClosed means that a server has ended a connection.
var errClosed = errors.New("the server closed the connection")

// lost returns an error that explains the end of a connection.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		return errClosed
	}
	return err
}
