package cluster_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
	"broker/integration/workqclient"
)

// session is a connection of a client of one protocol.
type session interface {
	submit(id string) error
	lease() (id string, err error) // empty: there is no job now
	finish(id string) (acked bool, err error)
	Close() error
}

// protocol opens sessions.
type protocol struct {
	name      string
	exclusive bool // its leases do not end with their connection
	dial      func(n *server.BrokerServer) (session, error)
}

var protocols = []protocol{
	{"gearman", false, dialGearman}, {"workq", true, dialWorkq}, {"faktory", true, dialFaktory},
}

// leaseWait is how long a session waits for a job.
const leaseWait = 200 * time.Millisecond

type gearman struct {
	*gearmanclient.Client
	handles map[string]string
}

func dialGearman(n *server.BrokerServer) (session, error) {
	c, err := gearmanclient.Dial(n.Gearman)
	if err != nil {
		return nil, err
	}
	return &gearman{c, map[string]string{}}, c.Send(gearmanclient.CanDo, "gearman")
}

func (g *gearman) submit(id string) error {
	_, err := g.Submit(gearmanclient.SubmitJobBg, "gearman", id, id)
	return err
}

func (g *gearman) lease() (string, error) { return g.leased(g.Grab(5 * time.Second)) }

// leased notes what was grabbed.
func (g *gearman) leased(handle, _, _, body string, err error) (string, error) {
	if err != nil || handle == "" {
		return "", err
	}
	g.handles[body] = handle
	return body, nil
}

// finish has no reply in this protocol.
func (g *gearman) finish(id string) (bool, error) {
	return false, g.Send(gearmanclient.WorkComplete, g.handles[id], "")
}

type workq struct{ *workqclient.Client }

func dialWorkq(n *server.BrokerServer) (session, error) {
	c, err := workqclient.Dial(n.Workq)
	return &workq{c}, err
}

func (w *workq) submit(id string) error {
	return w.Add(workqclient.Job{ID: id, Name: "workq", TTR: time.Hour, TTL: 2 * time.Hour, Body: []byte(id)})
}

func (w *workq) lease() (string, error) {
	l, err := w.Lease(leaseWait, "workq")
	if errors.Is(err, workqclient.ErrTimeout) {
		return "", nil
	}
	return l.ID, err
}

func (w *workq) finish(id string) (bool, error) {
	err := w.Complete(id, []byte("done"))
	if errors.Is(err, workqclient.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// faktory speaks just enough of the protocol.
type faktory struct {
	net.Conn
	in  *bufio.Reader
	wid string
}

func dialFaktory(n *server.BrokerServer) (session, error) {
	f, err := dialFaktoryAs(n, fmt.Sprint("w", time.Now().UnixNano()))
	if err != nil {
		return nil, err
	}
	return f, nil
}

// dialFaktoryAs connects a worker of that id.
func dialFaktoryAs(n *server.BrokerServer, wid string) (*faktory, error) {
	conn, err := net.DialTimeout("tcp", n.Faktory, harness.Patience)
	if err != nil {
		return nil, err
	}
	f := &faktory{conn, bufio.NewReader(conn), wid}
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err = f.in.ReadString('\n'); err == nil {
		_, err = f.call(`HELLO {"v":2,"hostname":"h","wid":"%s","pid":1,"labels":[]}`, wid)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return f, nil
}

// call sends a line and reads one reply.
func (f *faktory) call(format string, args ...any) (string, error) {
	_ = f.SetDeadline(time.Now().Add(2 * time.Minute))
	if _, err := fmt.Fprintf(f, format+"\r\n", args...); err != nil {
		return "", err
	}
	line, err := f.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	switch {
	case strings.HasPrefix(line, "+"):
		return line[1:], nil
	case line == "$-1":
		return "", nil
	case strings.HasPrefix(line, "$"):
		size, err := strconv.Atoi(line[1:])
		if err != nil {
			return "", err
		}
		body := make([]byte, size+2)
		_, err = io.ReadFull(f.in, body)
		return string(body[:size]), err
	}
	return "", errors.New(line)
}

func (f *faktory) submit(id string) error {
	_, err := f.call(`PUSH {"jid":"%s","queue":"faktory","jobtype":"T","args":[],"reserve_for":3600}`, id)
	return err
}

func (f *faktory) lease() (string, error) {
	reply, err := f.call("FETCH faktory")
	if err != nil || reply == "" {
		return "", err
	}
	var job struct {
		JID string `json:"jid"`
	}
	return job.JID, errors.Join(json.Unmarshal([]byte(reply), &job))
}

func (f *faktory) beat() error {
	_, err := f.call(`BEAT {"wid":"%s","rss_kb":1000}`, f.wid)
	return err
}

func (f *faktory) finish(id string) (bool, error) {
	_, err := f.call(`ACK {"jid":"%s"}`, id)
	return err == nil, err
}
