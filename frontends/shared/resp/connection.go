package resp

import (
	"errors"
	"strconv"
	"strings"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
	"broker/frontends"
)

// Server is what the connections of a front-end share.
type Server struct {
	Broker   *access.Guard
	Messages *Hub
	Options
}

// Connection is the part of a session that all front-ends of this package share: it reads commands and knows who sent
// them. Its methods whose names are those of commands serve them; args are the words of the command.
type Connection struct {
	Conn       frontends.Conn
	Client     core.ClientID
	Authorized bool // a password was given, or none is needed
	Closing    bool
	Subscriber Subscriber

	server *Server
	reader reader
	name   string // of CLIENT SETNAME
}

// Overflow is the reply to a connection above the connection limit.
const Overflow = "-ERR max number of clients reached\r\n"

// Open begins a connection.
func (s *Server) Open(c frontends.Conn) Connection {
	return Connection{
		Conn: c, Client: frontends.OpenClient(s.Broker, c, nil), Authorized: s.Password == "",
		Subscriber: Subscriber{Wake: c.Wake}, server: s, reader: reader{Max: s.MaxBodyBytes},
	}
}

// ReadCommands passes the commands of an input to serve, until that returns false, and returns how much it has read.
// After an error the session must reply and hang up.
func (c *Connection) ReadCommands(in []byte, serve func(args []string) (more bool)) (used int, err error) {
	var buf [16][]byte
	for more := true; more && !c.Closing && used < len(in); {
		raw, n, err := c.reader.Next(in[used:], buf[:0])
		if errors.Is(err, errShort) {
			break
		}
		if err != nil {
			return len(in), err
		}
		used += n
		if len(raw) == 0 {
			continue
		}
		args := make([]string, len(raw))
		for i, a := range raw {
			args[i] = string(a)
		}
		if name := strings.ToLower(args[0]); name == "post" || name == "host:" {
			c.HangUp() // a web page made the browser connect here: the rest of the request could contain commands
			break
		}
		more = serve(args)
		if used < len(in) && c.Conn.Out().Len() > frontends.PauseAt {
			c.Conn.Wake() // to continue with the rest
			return used, nil
		}
	}
	if c.Closing {
		return len(in), nil
	}
	return used, nil
}

// HangUp closes the connection once all output is sent.
func (c *Connection) HangUp() {
	c.Closing = true
	c.Conn.CloseAfterFlush()
}

// Admission implements frontends.Admitter.
func (c *Connection) Admission() frontends.Admission {
	if !c.Authorized {
		return frontends.Admission{Rights: frontends.LoginDue}
	}
	return frontends.AdmissionOf(c.server.Broker, c.Client, frontends.LoginDue)
}

// Dismiss implements frontends.Admitter.
func (c *Connection) Dismiss(text string) {
	out := c.Conn.Out()
	word := "NOAUTH "
	if c.Admission().Rights == frontends.Admitted {
		word = "ERR "
	}
	out.Put(redcon.AppendError(out.Buf(), word+text), 0)
	c.HangUp()
}

// Holder is whose share of pools the client uses now.
func (c *Connection) Holder() access.Holder {
	return access.HolderOf(c.server.Broker.PrincipalOf(c.Client), c.address())
}

// Reset ends subscriptions, logs the client out and forgets its name.
func (c *Connection) Reset() {
	c.server.Messages.Leave(&c.Subscriber)
	c.Authorized = c.server.Password == ""
	c.server.Broker.LogIn(c.Client, nil)
	c.setName("")
}

// setName gives the client a name for lists of clients.
func (c *Connection) setName(name string) {
	c.name = name
	c.server.Broker.Do(c.Client, []core.Op{&core.NameClient{Name: name}}, nil)
}

// address is the client's address, for the login limiter.
func (c *Connection) address() string {
	if a := c.Conn.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}

// Auth serves AUTH [user] password.
func (c *Connection) Auth(b []byte, args []string) ([]byte, core.Commit) {
	name := ""
	if len(args) == 3 {
		name = args[1]
	}
	login := c.server.authenticate(name, args[len(args)-1], c.address())
	if login.hangUp {
		defer c.HangUp()
	}
	if login.refusal != "" {
		return Refuse(b, login.refusal)
	}
	if login.principal != nil {
		c.server.Broker.LogIn(c.Client, login.principal)
	}
	c.Authorized = true
	return OK(b)
}

// ClientCommand serves the CLIENT commands that libraries send when they connect.
func (c *Connection) ClientCommand(b []byte, args []string) ([]byte, core.Commit) {
	switch strings.ToLower(args[1]) {
	case "setname":
		if len(args) != 3 {
			return Refuse(b, WrongArity("client|setname"))
		}
		if strings.ContainsFunc(args[2], func(r rune) bool { return r < '!' || r > '~' }) {
			return Refuse(b, "ERR Client names cannot contain spaces, newlines or special characters.")
		}
		c.setName(core.CutText(args[2], maxEcho))
	case "getname":
		if c.name == "" {
			return redcon.AppendNull(b), 0
		}
		return redcon.AppendBulkString(b, c.name), 0
	case "id":
		return redcon.AppendInt(b, int64(c.Client)), 0
	}
	return OK(b)
}

// Ping serves PING; a client that is subscribed gets a message.
func (c *Connection) Ping(b []byte, args []string) ([]byte, core.Commit) {
	text := strings.Join(args[1:], "")
	switch {
	case c.Subscriber.Count() > 0:
		return redcon.AppendBulkString(redcon.AppendBulkString(redcon.AppendArray(b, 2), "pong"), text), 0
	case len(args) > 1:
		return redcon.AppendBulkString(b, text), 0
	}
	return redcon.AppendString(b, "PONG"), 0
}

// Echo serves ECHO.
func (*Connection) Echo(b []byte, args []string) ([]byte, core.Commit) {
	return redcon.AppendBulkString(b, args[1]), 0
}

// Hello refuses HELLO, so that libraries use RESP2.
func (*Connection) Hello(b []byte, args []string) ([]byte, core.Commit) {
	return Refuse(b, unknownCommand(args))
}

// Select serves SELECT. There is only database 0.
func (*Connection) Select(b []byte, args []string) ([]byte, core.Commit) {
	switch n, err := strconv.Atoi(args[1]); {
	case err != nil:
		return Refuse(b, NotInteger)
	case n != 0:
		return Refuse(b, "ERR DB index is out of range")
	}
	return OK(b)
}

// Quit serves QUIT.
func (c *Connection) Quit(b []byte, _ []string) ([]byte, core.Commit) {
	defer c.HangUp()
	return OK(b)
}
