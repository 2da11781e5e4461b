package conveyor

import (
	"fmt"
	"strings"

	"github.com/tidwall/redcon"

	"broker/core"
	"broker/frontends/access"
	"broker/frontends/resp"
)

// This file serves the commands that Redis libraries send when they connect, and that people use to check a server.

func ping(s *session, b []byte, args []string) ([]byte, core.Commit) {
	return resp.AppendPing(b, args, s.subscriber.Count() > 0), 0
}

func echo(_ *session, b []byte, args []string) ([]byte, core.Commit) {
	return redcon.AppendBulkString(b, args[1]), 0
}

// hello is refused, so that libraries fall back to RESP2.
func hello(_ *session, b []byte, args []string) ([]byte, core.Commit) {
	return refuse(b, resp.UnknownCommand(args))
}

func clientCommand(s *session, b []byte, args []string) ([]byte, core.Commit) {
	switch strings.ToLower(args[1]) {
	case "setname":
		if len(args) != 3 {
			return refuse(b, resp.WrongArity("client|setname"))
		}
		s.front.broker.Do(s.client, []core.Op{&core.NameClient{Name: core.CutText(args[2], resp.MaxEcho)}}, nil)
	case "id":
		return redcon.AppendInt(b, int64(s.client)), 0 //nolint:gosec // small
	}
	return ok(b)
}

func selectCommand(_ *session, b []byte, args []string) ([]byte, core.Commit) {
	return resp.AppendSelect(b, args), 0
}

func info(s *session, b []byte, _ []string) ([]byte, core.Commit) {
	return redcon.AppendBulkString(b, fmt.Sprintf("# Server\r\nredis_version:%s\r\nredis_mode:standalone\r\nserver_name:broker\r\n"+
		"# Stats\r\npubsub_dropped:%d\r\n", resp.RedisVersion, s.front.messages.Dropped())), 0
}

func quit(s *session, b []byte, _ []string) ([]byte, core.Commit) {
	defer s.hangUp()
	return ok(b)
}

// auth [user] password
func auth(s *session, b []byte, args []string) ([]byte, core.Commit) {
	name := ""
	if len(args) == 3 {
		name = args[1]
	}
	o := &s.front.opts
	login := resp.Credentials{Password: o.Password, Access: o.Access}.Auth(name, args[len(args)-1], s.address(), s.front.broker.Now())
	if login.HangUp {
		defer s.hangUp()
	}
	if login.Refusal != "" {
		return refuse(b, login.Refusal)
	}
	if login.Principal != nil {
		s.reopen(login.Principal)
	}
	s.authorized = true
	return ok(b)
}

// address is the client's address, for the audit log and the login limiter.
func (s *session) address() string {
	if a := s.conn.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}

// noteCancel reports a removed job for the audit log.
func (s *session) noteCancel(uuid string) {
	s.front.opts.Audit.Note(s.front.broker, s.client, s.conn, access.Change{Protocol: core.Conveyor, Action: "job.cancel", Target: uuid})
}

// publish channel message
func publish(s *session, b []byte, args []string) ([]byte, core.Commit) {
	if parseKey(args[1]).kind != keyEvents {
		return refuseKey(b, args[1])
	}
	return redcon.AppendInt(b, int64(s.front.messages.Publish(args[1], args[2], 0))), 0
}

// anyName stands for all queues of a namespace: a client may read it only if it may read all of them. Events need that right.
const anyName = "\x00"

// subscribe channel...
func subscribe(s *session, b []byte, args []string) ([]byte, core.Commit) {
	for _, channel := range args[1:] {
		k := parseKey(channel)
		if k.kind != keyEvents {
			return refuseKey(b, channel)
		}
		if !access.AllowedFor(s.front.broker, s.client, access.Read, s.front.queueOf(k.namespace, anyName)) {
			return refuse(b, resp.NoPermission(args[0]))
		}
	}
	return s.front.messages.Subscribe(&s.subscriber, b, args[1:]), 0
}

// unsubscribe [channel...]
func unsubscribe(s *session, b []byte, args []string) ([]byte, core.Commit) {
	s.deliverMessages() // messages of the channels that the client is leaving
	return s.front.messages.Unsubscribe(&s.subscriber, b, args[1:]), 0
}
