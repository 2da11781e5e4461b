package qless

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
	"broker/frontends/shared/resp"
)

// redisCommand is a row of the table of Redis commands. A client needs the role for all queues.
type redisCommand = resp.Command[*session]

// reading is the role of readers.
var reading = []access.Role{access.Read}

// redisCommands are the commands that Qless clients send. Any other command is refused.
var redisCommands = map[string]redisCommand{
	"evalsha":      {Run: evalsha, Min: 3},
	"eval":         {Run: eval, Min: 3},
	"script":       {Run: script, Min: 2},
	"subscribe":    {Run: subscribe, Min: 2, Subscribed: true, Roles: reading, WhileLoading: true},
	"unsubscribe":  {Run: unsubscribe, Min: 1, Subscribed: true, WhileLoading: true},
	"psubscribe":   {Run: psubscribe, Min: 2, Subscribed: true, Roles: reading, WhileLoading: true},
	"punsubscribe": {Run: punsubscribe, Min: 1, Subscribed: true, WhileLoading: true},
	"publish":      {Run: publish, Min: 3, Max: 3, Roles: []access.Role{access.Operate}, WhileLoading: true},
	"ping":         {Run: (*session).Ping, Min: 1, Max: 2, Subscribed: true},
	"echo":         {Run: (*session).Echo, Min: 2, Max: 2, WhileLoading: true},
	"info":         {Run: info, Min: 1, Roles: reading, WhileLoading: true},
	"multi":        {Run: multi, Min: 1, Max: 1, Immediate: true},
	"exec":         {Run: exec, Min: 1, Max: 1, Immediate: true},
	"discard":      {Run: discard, Min: 1, Max: 1, Immediate: true, WhileLoading: true},
	"zcard":        {Run: zcard, Min: 2, Max: 2, Roles: reading},
	"zscore":       {Run: zscore, Min: 3, Max: 3, Roles: reading},
	"hello":        {Run: (*session).Hello, Min: 1, Open: true, Immediate: true, WhileLoading: true},
	"client":       {Run: (*session).ClientCommand, Min: 2, WhileLoading: true},
	"select":       {Run: (*session).Select, Min: 2, Max: 2, WhileLoading: true},
	"auth":         {Run: (*session).Auth, Min: 2, Max: 3, Open: true, Immediate: true, WhileLoading: true},
	"flushdb":      {Run: flushdb, Min: 1, Max: 2, Roles: []access.Role{access.Admin}},
	"quit":         {Run: (*session).Quit, Min: 1, Open: true, Subscribed: true, Immediate: true, WhileLoading: true},
	"reset":        {Run: reset, Min: 1, Max: 1, Open: true, Subscribed: true, Immediate: true, WhileLoading: true},
}

// evalsha sha numkeys key... arg...
func evalsha(s *session, b []byte, args []string) []byte {
	if refusal := keysRefusal(args[2:]); refusal != "" {
		return redcon.AppendError(b, refusal)
	}
	if !s.front.scripts.has(args[1]) {
		return redcon.AppendError(b, noScript)
	}
	return s.callScript(b, strings.ToLower(args[1]), args[2:])
}

// keysRefusal checks the number of keys, the first of args, and returns an error text.
func keysRefusal(args []string) string {
	keys, err := strconv.Atoi(args[0])
	switch {
	case err != nil:
		return errInteger.Error()
	case keys > len(args)-1:
		return "ERR Number of keys can't be greater than number of args"
	case keys < 0:
		return "ERR Number of keys can't be negative"
	}
	return ""
}

// eval text numkeys key... arg...
func eval(s *session, b []byte, args []string) []byte {
	if refusal := keysRefusal(args[2:]); refusal != "" {
		return redcon.AppendError(b, refusal)
	}
	sha, refusal := s.front.scripts.load(args[1])
	if refusal != "" {
		return redcon.AppendError(b, refusal)
	}
	return s.callScript(b, sha, args[2:])
}

// callScript runs an operation; args are the number of keys, the keys and the arguments.
func (s *session) callScript(b []byte, sha string, args []string) []byte {
	if keys, err := strconv.Atoi(args[0]); err != nil || keys > 0 {
		return redcon.AppendError(b, scriptText(fault("No Keys should be provided"), sha))
	}
	reply, err := s.permittedCall(args[1:])
	switch {
	case errors.Is(err, core.ErrForbidden):
		return redcon.AppendError(b, resp.NoPermission(args[1]))
	case err != nil:
		return redcon.AppendError(b, oneErrorLine(scriptText(err, sha)))
	}
	s.noteCall(args[1:])
	return appendReply(b, reply)
}

// permittedCall runs an operation if the client may call it. Otherwise the error is core.ErrForbidden.
func (s *session) permittedCall(argv []string) (reply any, err error) {
	defer s.enter()()
	if !s.mayCall(argv) {
		return nil, core.ErrForbidden
	}
	return s.front.call(argv)
}

// oneErrorLine removes line breaks that a client's input may contain.
func oneErrorLine(s string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
}

// appendReply writes a value in the way that Redis converts Lua values.
func appendReply(b []byte, v any) []byte {
	switch v := v.(type) {
	case float64:
		return redcon.AppendInt(b, integer(v))
	case string:
		return redcon.AppendBulkString(b, v)
	case []string:
		b = redcon.AppendArray(b, len(v))
		for _, s := range v {
			b = redcon.AppendBulkString(b, s)
		}
		return b
	case bool:
		if v {
			return redcon.AppendInt(b, 1)
		}
	}
	return redcon.AppendNull(b)
}

// script load text, exists sha..., flush
func script(s *session, b []byte, args []string) []byte {
	switch sub := strings.ToLower(args[1]); {
	case sub == "load" && len(args) == 3:
		sha, refusal := s.front.scripts.load(args[2])
		if refusal != "" {
			return redcon.AppendError(b, refusal)
		}
		return redcon.AppendBulkString(b, sha)
	case sub == "load", sub == "exists" && len(args) == 2:
		return redcon.AppendError(b, resp.WrongArity("script|"+sub))
	case sub == "exists":
		b = redcon.AppendArray(b, len(args)-2)
		for _, sha := range args[2:] {
			known := 0.0
			if s.front.scripts.has(sha) {
				known = 1
			}
			b = appendReply(b, known)
		}
		return b
	case sub == "flush":
		s.front.scripts.clear()
		return redcon.AppendOK(b)
	}
	return redcon.AppendError(b, "ERR unknown subcommand '"+resp.OneLine(args[1])+"'. Try SCRIPT HELP.")
}

func info(s *session, b []byte, _ []string) []byte {
	f := s.front
	loading, jobs, queues, workers := 1, 0, 0, 0
	if f.ready.Load() {
		leave := s.look()
		loading, jobs, queues, workers = 0, f.model.jobs.len(), f.model.seen.len(), f.model.workers.len()
		leave()
	}
	text := fmt.Sprintf("# Server\r\nredis_version:%s\r\nredis_mode:standalone\r\nserver_name:broker\r\n"+
		"# Persistence\r\nloading:%d\r\n# Stats\r\nscript_calls:%d\r\npubsub_dropped:%d\r\n"+
		"# Replication\r\nrole:master\r\nconnected_slaves:0\r\n# Qless\r\njobs:%d\r\nqueues:%d\r\nworkers:%d\r\n",
		resp.RedisVersion, loading, f.calls.Load(), f.messages.Dropped(), jobs, queues, workers)
	return redcon.AppendBulkString(b, text)
}

func flushdb(s *session, b []byte, _ []string) []byte {
	if !s.front.opts.AllowFlush {
		return redcon.AppendError(b, "ERR FLUSHDB is disabled: the setting qless.allow_flush is off")
	}
	if err := s.flushAll(); err != nil {
		return redcon.AppendError(b, errorText(err))
	}
	s.noteChange(access.Change{Action: "jobs.flush"})
	return redcon.AppendOK(b)
}

func (s *session) flushAll() error {
	defer s.enter()()
	return s.front.flush()
}

func reset(s *session, b []byte, _ []string) []byte {
	s.endMulti()
	s.Reset()
	return redcon.AppendString(b, "RESET")
}
