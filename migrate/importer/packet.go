package importer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
)

// packetType is the type of a Gearman packet: its number on the wire.
type packetType uint32

const (
	packetCanDo           packetType = 1
	packetResetAbilities  packetType = 3
	packetSubmitJob       packetType = 7
	packetJobCreated      packetType = 8
	packetNoJob           packetType = 10
	packetWorkStatus      packetType = 12
	packetWorkComplete    packetType = 13
	packetWorkFail        packetType = 14
	packetEchoReq         packetType = 16
	packetEchoRes         packetType = 17
	packetSubmitJobBg     packetType = 18
	packetError           packetType = 19
	packetSubmitJobHigh   packetType = 21
	packetWorkData        packetType = 28
	packetWorkWarning     packetType = 29
	packetGrabJobUniq     packetType = 30
	packetJobAssignUniq   packetType = 31
	packetSubmitJobHighBg packetType = 32
	packetSubmitJobLow    packetType = 33
	packetSubmitJobLowBg  packetType = 34
	packetGetStatusUnique packetType = 41
	packetStatusResUnique packetType = 42
)

// maxPacket limits the data of a packet from the server, in bytes.
const maxPacket = 1 << 30

var requestMagic = []byte("\x00REQ")

// packet is a packet of a server. Its arguments are separated by NUL.
type packet struct {
	kind packetType
	data []byte
}

// args splits the data into n arguments; the last one is the rest.
func (p packet) args(n int) ([][]byte, error) {
	args := bytes.SplitN(p.data, []byte{0}, n)
	if len(args) != n {
		return nil, fmt.Errorf("packet %d with %d arguments in place of %d", p.kind, len(args), n)
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
func (c *gearmanConn) queue(kind packetType, args ...[]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data := bytes.Join(args, []byte{0})
	header := binary.BigEndian.AppendUint32(append(make([]byte, 0, 12), requestMagic...), uint32(kind))
	header = binary.BigEndian.AppendUint32(header, uint32(len(data))) //nolint:gosec // of a packet that was received
	_, _ = c.w.Write(header)                                          // flush returns the error
	_, _ = c.w.Write(data)                                            // likewise
}

func (c *gearmanConn) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.w.Flush()
}

// refusal is the error that an ERROR packet reports.
func (p packet) refusal() error {
	code, text, _ := strings.Cut(string(p.data), "\x00")
	return serverError(strings.TrimSpace(code + " " + text))
}

// read reads the next packet. An ERROR of the server is a serverError.
func (c *gearmanConn) read() (packet, error) {
	p, err := c.next()
	if err == nil && p.kind == packetError {
		err = p.refusal()
	}
	return p, err
}

// next reads the next packet of any type.
func (c *gearmanConn) next() (packet, error) {
	var header [12]byte
	if _, err := io.ReadFull(c.r, header[:]); err != nil {
		return packet{}, lost(err)
	}
	size := binary.BigEndian.Uint32(header[8:])
	if size > maxPacket || string(header[:4]) != "\x00RES" {
		return packet{}, errors.New("the server does not speak Gearman")
	}
	p := packet{kind: packetType(binary.BigEndian.Uint32(header[4:])), data: make([]byte, size)}
	if _, err := io.ReadFull(c.r, p.data); err != nil {
		return packet{}, lost(err)
	}
	return p, nil
}

// expect reads the next packet, which must be of this kind.
func (c *gearmanConn) expect(kind packetType) (packet, error) {
	p, err := c.read()
	if err == nil && p.kind != kind {
		err = fmt.Errorf("packet %d where %d was expected", p.kind, kind)
	}
	return p, err
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
		if strings.HasPrefix(line, "ERR") || strings.HasPrefix(line, "UNKNOWN_COMMAND") || strings.HasPrefix(line, "-") {
			return nil, fmt.Errorf("%s: the server refused: %s", command, line)
		}
		lines = append(lines, line)
	}
}

// lost returns an error that explains the end of a connection.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the server closed the connection")
	}
	return err
}
