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
	Shared   *SharedClient // runs the commands of all connections; nil: each connection's own client does
	frontends.Options

	words frontends.Pool[[16][]byte]
}

// Session is a session that embeds a Connection.
type Session interface {
	// Serve runs one command.
	Serve(args []string)
}

// Connection is the part of a session that all front-ends of this package share: it reads commands and knows who sent
// them. Its methods whose names are those of commands serve them; args are the words of the command.
type Connection struct {
	frontends.Requests
	Authorized bool // a password was given, or none is needed
	Subscriber Subscriber

	server  *Server
	session Session
	reader  reader
	words   *[16][]byte // space for the words of a command; during Feed only
	name    string      // of CLIENT SETNAME
	commit  core.Commit // for which the next answer waits
}

// Overflow is the reply to a connection above the connection limit.
const Overflow = "-ERR max number of clients reached\r\n"

// Open begins the connection of a session.
func (c *Connection) Open(server *Server, conn frontends.Conn, session interface {
	frontends.Stepper
	Session
},
) {
	c.Peer = frontends.NewPeer(server.Broker, conn)
	c.Init(session)
	c.server, c.session = server, session
	c.Authorized, c.reader.Max, c.Subscriber.Wake = server.Password == "", server.MaxBodyBytes, conn.Wake
}

// Begin implements frontends.Requests.
func (c *Connection) Begin() { c.words = c.server.words.Get() }

// End implements frontends.Requests.
func (c *Connection) End() {
	clear(c.words[:])
	c.server.words.Put(c.words)
	c.words = nil
}

// Step implements frontends.Requests: it passes the first command of the input to the session.
func (c *Connection) Step(in []byte) (used int, more bool) {
	raw, n, err := c.reader.Next(in, c.words[:0])
	switch {
	case errors.Is(err, errShort):
		return 0, false
	case err != nil:
		c.Reply(redcon.AppendError(nil, "ERR "+err.Error()))
		c.HangUp()
		return len(in), false
	case len(raw) == 0:
		return n, true
	}
	args := make([]string, len(raw))
	for i, a := range raw {
		args[i] = string(a)
	}
	if name := strings.ToLower(args[0]); name == "post" || name == "host:" {
		c.HangUp() // a web page made the browser connect here: the rest of the request could contain commands
		return n, false
	}
	c.session.Serve(args)
	return n, true
}

// Closed implements frontends.Session.
func (c *Connection) Closed() {
	c.Closing = true
	c.server.Messages.Leave(&c.Subscriber)
	if c.server.Shared != nil {
		c.server.Shared.forget(c)
	}
	c.server.Broker.Close(c.Client)
}

// Admission implements frontends.Admitter.
func (c *Connection) Admission() frontends.Admission {
	if !c.Authorized {
		return frontends.Admission{Rights: frontends.LoginDue}
	}
	return c.AdmissionOr(frontends.LoginDue)
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
	return access.HolderOf(c.Principal(), c.address())
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
func (c *Connection) Auth(b []byte, args []string) []byte {
	name := ""
	if len(args) == 3 {
		name = args[1]
	}
	login := c.server.authenticate(name, args[len(args)-1], c.address())
	if login.hangUp {
		defer c.HangUp()
	}
	if login.refusal != "" {
		return redcon.AppendError(b, login.refusal)
	}
	if login.principal != nil {
		c.server.Broker.LogIn(c.Client, login.principal)
	}
	c.Authorized = true
	return redcon.AppendOK(b)
}

// ClientCommand serves the CLIENT commands that libraries send when they connect.
func (c *Connection) ClientCommand(b []byte, args []string) []byte {
	switch strings.ToLower(args[1]) {
	case "setname":
		if len(args) != 3 {
			return redcon.AppendError(b, WrongArity("client|setname"))
		}
		if strings.ContainsFunc(args[2], func(r rune) bool { return r < '!' || r > '~' }) {
			return redcon.AppendError(b, "ERR Client names cannot contain spaces, newlines or special characters.")
		}
		c.setName(core.CutText(args[2], maxEcho))
	case "getname":
		if c.name == "" {
			return redcon.AppendNull(b)
		}
		return redcon.AppendBulkString(b, c.name)
	case "id":
		return redcon.AppendInt(b, int64(c.Client))
	}
	return redcon.AppendOK(b)
}

// Ping serves PING; a client that is subscribed gets a message.
func (c *Connection) Ping(b []byte, args []string) []byte {
	text := strings.Join(args[1:], "")
	switch {
	case c.Subscriber.Count() > 0:
		return redcon.AppendBulkString(redcon.AppendBulkString(redcon.AppendArray(b, 2), "pong"), text)
	case len(args) > 1:
		return redcon.AppendBulkString(b, text)
	}
	return redcon.AppendString(b, "PONG")
}

// Echo serves ECHO.
func (*Connection) Echo(b []byte, args []string) []byte {
	return redcon.AppendBulkString(b, args[1])
}

// Hello refuses HELLO, so that libraries use RESP2.
func (*Connection) Hello(b []byte, args []string) []byte {
	return redcon.AppendError(b, unknownCommand(args))
}

// Select serves SELECT. There is only database 0.
func (*Connection) Select(b []byte, args []string) []byte {
	switch n, err := strconv.Atoi(args[1]); {
	case err != nil:
		return redcon.AppendError(b, NotInteger)
	case n != 0:
		return redcon.AppendError(b, "ERR DB index is out of range")
	}
	return redcon.AppendOK(b)
}

// Quit serves QUIT.
func (c *Connection) Quit(b []byte, _ []string) []byte {
	defer c.HangUp()
	return redcon.AppendOK(b)
}

// DefaultBytes is the default limit of a body and of unsent output.
const DefaultBytes = 16 << 20
