// Package gearmanclient is a Gearman client that sends single packets. Tests use it for what other clients cannot do:
// many submissions in flight, a connection that breaks at a given moment, packets in any order.
package gearmanclient

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Type is the kind of a packet.
type Type uint32

// Packet types with their numbers on the wire.
const (
	CanDo           Type = 1
	CantDo          Type = 2
	ResetAbilities  Type = 3
	PreSleep        Type = 4
	Noop            Type = 6
	SubmitJob       Type = 7
	JobCreated      Type = 8
	GrabJob         Type = 9
	NoJob           Type = 10
	JobAssign       Type = 11
	WorkStatus      Type = 12
	WorkComplete    Type = 13
	WorkFail        Type = 14
	GetStatus       Type = 15
	EchoReq         Type = 16
	EchoRes         Type = 17
	SubmitJobBg     Type = 18
	Error           Type = 19
	StatusRes       Type = 20
	SubmitJobHigh   Type = 21
	SetClientID     Type = 22
	CanDoTimeout    Type = 23
	WorkException   Type = 25
	OptionReq       Type = 26
	OptionRes       Type = 27
	WorkData        Type = 28
	WorkWarning     Type = 29
	GrabJobUniq     Type = 30
	JobAssignUniq   Type = 31
	SubmitJobHighBg Type = 32
	SubmitJobLow    Type = 33
	SubmitJobLowBg  Type = 34
	SubmitJobEpoch  Type = 36
	GrabJobAll      Type = 39
	GetStatusUnique Type = 41
	StatusResUnique Type = 42
)

const (
	headerSize = 12
	maxPacket  = 128 << 20
)

// replyWait is how long the server may take to connect, to read and to reply; the machine may be busy.
const replyWait = 2 * time.Minute

// Packet is a packet from the server. Its arguments are separated by NUL.
type Packet struct {
	Type Type
	Data []byte
}

// Args splits the data into n arguments; the last one is the rest.
func (p Packet) Args(n int) []string {
	parts := bytes.SplitN(p.Data, []byte{0}, n)
	args := make([]string, n)
	for i, part := range parts {
		args[i] = string(part)
	}
	return args
}

func (p Packet) String() string { return fmt.Sprintf("packet %d %q", p.Type, p.Data) }

// Client is a connection. One goroutine may write while another one reads.
type Client struct {
	conn net.Conn
	in   *bufio.Reader
}

// Dial connects.
func Dial(addr string) (*Client, error) {
	conn, err := net.DialTimeout("tcp", addr, replyWait)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Append appends a request to b.
func Append(b []byte, t Type, args ...string) []byte {
	size := max(len(args)-1, 0)
	for _, a := range args {
		size += len(a)
	}
	b = append(b, 0, 'R', 'E', 'Q')
	b = binary.BigEndian.AppendUint32(b, uint32(t))
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	for i, a := range args {
		if i > 0 {
			b = append(b, 0)
		}
		b = append(b, a...)
	}
	return b
}

// Send writes one request.
func (c *Client) Send(t Type, args ...string) error { return c.Write(Append(nil, t, args...)) }

// Write writes raw bytes.
func (c *Client) Write(b []byte) error { return c.WriteWithin(replyWait, b) }

// WriteWithin writes raw bytes to a server that may have stopped reading.
func (c *Client) WriteWithin(d time.Duration, b []byte) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	_, err := c.conn.Write(b)
	return err
}

// Read reads the next packet. It waits at most that long for its start.
func (c *Client) Read(wait time.Duration) (Packet, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return Packet{}, err
	}
	var head [headerSize]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return Packet{}, err
	}
	if string(head[:4]) != "\x00RES" {
		return Packet{}, fmt.Errorf("protocol error: packet starts with %q", head[:])
	}
	size := binary.BigEndian.Uint32(head[8:])
	if size > maxPacket {
		return Packet{}, fmt.Errorf("protocol error: packet of %d bytes", size)
	}
	p := Packet{Type: Type(binary.BigEndian.Uint32(head[4:])), Data: make([]byte, size)}
	if err := c.conn.SetReadDeadline(time.Now().Add(replyWait)); err != nil {
		return Packet{}, err
	}
	_, err := io.ReadFull(c.in, p.Data)
	return p, err
}

// Expect reads the next packet, which must have that type.
func (c *Client) Expect(t Type, wait time.Duration) (Packet, error) {
	p, err := c.Read(wait)
	if err == nil && p.Type != t {
		err = fmt.Errorf("got %v, want type %d", p, t)
	}
	return p, err
}

// Submit submits a job and returns its handle.
func (c *Client) Submit(t Type, function, unique, body string) (string, error) {
	if err := c.Send(t, function, unique, body); err != nil {
		return "", err
	}
	p, err := c.Expect(JobCreated, replyWait)
	return string(p.Data), err
}

// Grab takes a job; it sleeps until there is one.
func (c *Client) Grab(wait time.Duration) (handle, function, unique, body string, err error) {
	deadline := time.Now().Add(wait)
	for {
		handle, function, unique, body, err = c.GrabNow(time.Until(deadline))
		if err != nil || handle != "" {
			return handle, function, unique, body, err
		}
		if err := c.Send(PreSleep); err != nil {
			return "", "", "", "", err
		}
		if _, err := c.Expect(Noop, time.Until(deadline)); err != nil {
			return "", "", "", "", err
		}
	}
}

// GrabNow takes a job if there is one now; otherwise the handle is empty. It waits at most that long for the reply.
func (c *Client) GrabNow(wait time.Duration) (handle, function, unique, body string, err error) {
	if err := c.Send(GrabJobUniq); err != nil {
		return "", "", "", "", err
	}
	p, err := c.readPastNoops(wait)
	if err != nil {
		return "", "", "", "", err
	}
	switch p.Type {
	case JobAssignUniq:
		a := p.Args(4)
		return a[0], a[1], a[2], a[3], nil
	case NoJob:
		return "", "", "", "", nil
	}
	return "", "", "", "", fmt.Errorf("%v in reply to a grab", p)
}

func (c *Client) readPastNoops(wait time.Duration) (Packet, error) {
	for {
		p, err := c.Read(wait)
		if err != nil || p.Type != Noop {
			return p, err
		}
	}
}

// Admin sends a text command and reads a one-line reply.
func (c *Client) Admin(command string) (string, error) {
	if err := c.Write([]byte(command + "\n")); err != nil {
		return "", err
	}
	return c.adminLine()
}

// AdminList sends a text command and reads the lines of the reply up to the dot.
func (c *Client) AdminList(command string) ([]string, error) {
	line, err := c.Admin(command)
	lines := []string{}
	for ; err == nil; line, err = c.adminLine() {
		if line == ".\n" {
			return lines, nil
		}
		if strings.HasPrefix(line, "ERR ") {
			return nil, fmt.Errorf("%s: %q", command, line)
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return nil, err
}

func (c *Client) adminLine() (string, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(replyWait)); err != nil {
		return "", err
	}
	return c.in.ReadString('\n')
}
