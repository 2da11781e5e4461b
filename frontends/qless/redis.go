package qless

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/redcon"

	"broker/core"
	"broker/frontends/access"
	"broker/frontends/resp"
)

// redisCommand runs a command and appends its reply. The reply must wait for the returned commit.
type redisCommand func(s *session, b []byte, args []string) ([]byte, core.Commit)

// redisEntry is a row of the table of commands.
type redisEntry struct {
	run        redisCommand
	min, max   int  // number of words, including the name; max zero: no limit
	open       bool // allowed without a password
	subscribed bool // allowed while the client is subscribed
	immediate  bool // not queued in a transaction
}

var redisCommands map[string]redisEntry

func init() { //nolint:gochecknoinits // EXEC runs commands of the table
	redisCommands = map[string]redisEntry{
		"evalsha":      {run: evalsha, min: 3},
		"eval":         {run: eval, min: 3},
		"script":       {run: script, min: 2},
		"subscribe":    {run: subscribe, min: 2, subscribed: true},
		"unsubscribe":  {run: unsubscribe, min: 1, subscribed: true},
		"psubscribe":   {run: psubscribe, min: 2, subscribed: true},
		"punsubscribe": {run: punsubscribe, min: 1, subscribed: true},
		"publish":      {run: publish, min: 3, max: 3},
		"ping":         {run: ping, min: 1, max: 2, subscribed: true},
		"echo":         {run: echo, min: 2, max: 2},
		"info":         {run: info, min: 1},
		"multi":        {run: multi, min: 1, max: 1, immediate: true},
		"exec":         {run: exec, min: 1, max: 1, immediate: true},
		"discard":      {run: discard, min: 1, max: 1, immediate: true},
		"zcard":        {run: zcard, min: 2, max: 2},
		"zscore":       {run: zscore, min: 3, max: 3},
		"hello":        {run: hello, min: 1, open: true, immediate: true},
		"client":       {run: clientCommand, min: 2},
		"select":       {run: selectCommand, min: 2, max: 2},
		"auth":         {run: auth, min: 2, max: 3, open: true, immediate: true},
		"flushdb":      {run: flushdb, min: 1, max: 2},
		"quit":         {run: quit, min: 1, open: true, subscribed: true, immediate: true},
		"reset":        {run: reset, min: 1, max: 1, open: true, subscribed: true, immediate: true},
	}
}

func refuse(b []byte, text string) ([]byte, core.Commit) { return redcon.AppendError(b, text), 0 }
func ok(b []byte) ([]byte, core.Commit)                  { return redcon.AppendOK(b), 0 }

// evalsha sha numkeys key... arg...
func evalsha(s *session, b []byte, args []string) ([]byte, core.Commit) {
	if refusal := keysRefusal(args[2:]); refusal != "" {
		return refuse(b, refusal)
	}
	if !s.f.scripts.has(args[1]) {
		return refuse(b, noScript)
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
func eval(s *session, b []byte, args []string) ([]byte, core.Commit) {
	if refusal := keysRefusal(args[2:]); refusal != "" {
		return refuse(b, refusal)
	}
	sha, refusal := s.f.scripts.load(args[1])
	if refusal != "" {
		return refuse(b, refusal)
	}
	return s.callScript(b, sha, args[2:])
}

// callScript runs an operation; args are the number of keys, the keys and the arguments.
func (s *session) callScript(b []byte, sha string, args []string) ([]byte, core.Commit) {
	if keys, err := strconv.Atoi(args[0]); err != nil || keys > 0 {
		return refuse(b, scriptText(fault("No Keys should be provided"), sha))
	}
	reply, commit, err := s.permittedCall(args[1:])
	switch {
	case errors.Is(err, core.ErrForbidden):
		return redcon.AppendError(b, resp.NoPermission(args[1])), 0
	case err != nil:
		return redcon.AppendError(b, oneErrorLine(scriptText(err, sha))), commit
	}
	s.noteCall(args[1:])
	return appendReply(b, reply), commit
}

// permittedCall runs an operation if the client may call it. Otherwise the error is core.ErrForbidden.
func (s *session) permittedCall(argv []string) (reply any, commit core.Commit, err error) {
	defer s.enter()()
	if !s.mayCall(argv) {
		return nil, 0, core.ErrForbidden
	}
	return s.f.call(argv)
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
func script(s *session, b []byte, args []string) ([]byte, core.Commit) {
	switch sub := strings.ToLower(args[1]); {
	case sub == "load" && len(args) == 3:
		sha, refusal := s.f.scripts.load(args[2])
		if refusal != "" {
			return refuse(b, refusal)
		}
		return redcon.AppendBulkString(b, sha), 0
	case sub == "load", sub == "exists" && len(args) == 2:
		return refuse(b, resp.WrongArity("script|"+sub))
	case sub == "exists":
		b = redcon.AppendArray(b, len(args)-2)
		for _, sha := range args[2:] {
			b = appendReply(b, map[bool]float64{true: 1}[s.f.scripts.has(sha)])
		}
		return b, 0
	case sub == "flush":
		s.f.scripts.clear()
		return ok(b)
	}
	return refuse(b, "ERR unknown subcommand '"+resp.OneLine(args[1])+"'. Try SCRIPT HELP.")
}

func ping(s *session, b []byte, args []string) ([]byte, core.Commit) {
	return resp.AppendPing(b, args, s.subscribed()), 0
}

func echo(_ *session, b []byte, args []string) ([]byte, core.Commit) {
	return redcon.AppendBulkString(b, args[1]), 0
}

func info(s *session, b []byte, _ []string) ([]byte, core.Commit) {
	f := s.f
	leave := s.enter()
	jobs, queues, workers := f.model.jobs.len(), f.model.seen.len(), f.model.workers.len()
	leave()
	text := fmt.Sprintf("# Server\r\nredis_version:%s\r\nredis_mode:standalone\r\nserver_name:broker\r\n"+
		"# Persistence\r\nloading:0\r\n# Stats\r\nscript_calls:%d\r\npubsub_dropped:%d\r\n"+
		"# Replication\r\nrole:master\r\nconnected_slaves:0\r\n# Qless\r\njobs:%d\r\nqueues:%d\r\nworkers:%d\r\n",
		resp.RedisVersion, f.commands.Load(), f.messages.Dropped(), jobs, queues, workers)
	return redcon.AppendBulkString(b, text), 0
}

func hello(_ *session, b []byte, args []string) ([]byte, core.Commit) {
	return refuse(b, resp.UnknownCommand(args))
}

// clientCommand serves the CLIENT commands that libraries send when they connect.
func clientCommand(s *session, b []byte, args []string) ([]byte, core.Commit) {
	switch strings.ToLower(args[1]) {
	case "setname":
		if len(args) != 3 {
			return refuse(b, resp.WrongArity("client|setname"))
		}
		if strings.ContainsFunc(args[2], func(r rune) bool { return r < '!' || r > '~' }) {
			return refuse(b, "ERR Client names cannot contain spaces, newlines or special characters.")
		}
		s.name = core.CutText(args[2], resp.MaxEcho)
		s.f.broker.Do(s.client, []core.Op{&core.NameClient{Name: s.name}}, nil)
	case "getname":
		if s.name == "" {
			return redcon.AppendNull(b), 0
		}
		return redcon.AppendBulkString(b, s.name), 0
	case "id":
		return redcon.AppendInt(b, int64(s.client)), 0 //nolint:gosec // small
	}
	return ok(b)
}

func selectCommand(_ *session, b []byte, args []string) ([]byte, core.Commit) {
	return resp.AppendSelect(b, args), 0
}

func flushdb(s *session, b []byte, _ []string) ([]byte, core.Commit) {
	if !s.f.opts.AllowFlush {
		return refuse(b, "ERR FLUSHDB is disabled: the setting qless.allow_flush is off")
	}
	commit, err := s.flushAll()
	if err != nil {
		return redcon.AppendError(b, errorText(err)), commit
	}
	s.noteChange(access.Change{Action: "jobs.flush"})
	return redcon.AppendOK(b), commit
}

func (s *session) flushAll() (core.Commit, error) {
	defer s.enter()()
	return s.f.flush()
}

func quit(s *session, b []byte, _ []string) ([]byte, core.Commit) {
	defer s.hangUp()
	return ok(b)
}

func reset(s *session, b []byte, _ []string) ([]byte, core.Commit) {
	s.f.messages.Leave(&s.subscriber)
	s.endMulti()
	s.authorized = s.f.opts.Password == ""
	s.reopen(nil)
	return redcon.AppendString(b, "RESET"), 0
}
