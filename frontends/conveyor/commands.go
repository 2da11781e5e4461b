package conveyor

import (
	"broker/core"
	"broker/frontends/access"
)

// command is a row of the table of commands. run appends the reply, which must wait for the returned commit. If it appends
// nothing, the reply comes later.
type command struct {
	run        func(s *session, b []byte, args []string) ([]byte, core.Commit)
	min, max   int  // number of words, including the name; max zero: no limit
	open       bool // allowed without a password
	subscribed bool // allowed while the client is subscribed

	// roles are the sufficient roles: the client needs one of them for at least one queue; none: every client may send the
	// command. The broker also checks the queues of changed jobs.
	roles []access.Role
}

// The roles of workers, and of readers.
var (
	working  = []access.Role{access.Consume}
	looking  = []access.Role{access.Read}
	watching = []access.Role{access.Read, access.Consume}
	adding   = []access.Role{access.Produce, access.Consume}
)

// commands are the commands of Conveyor's client, worker and web pages. Any other command is refused.
var commands = map[string]command{
	"lpush":            {run: lpush, min: 3, roles: adding},
	"brpop":            {run: brpop, min: 3, roles: working},
	"rpop":             {run: rpop, min: 2, max: 2, roles: working},
	"llen":             {run: llen, min: 2, max: 2, roles: looking},
	"lrange":           {run: lrange, min: 4, max: 4, roles: looking},
	"lrem":             {run: lrem, min: 4, max: 4, roles: []access.Role{access.Operate}},
	"set":              {run: set, min: 3, roles: working},
	"get":              {run: get, min: 2, max: 2, roles: watching},
	"del":              {run: del, min: 2, roles: working},
	"incr":             {run: incr, min: 2, max: 2, roles: working},
	"expire":           {run: expire, min: 3, max: 4, roles: working},
	"sadd":             {run: sadd, min: 3, roles: working},
	"srem":             {run: srem, min: 3, roles: working},
	"scard":            {run: scard, min: 2, max: 2, roles: watching},
	"smembers":         {run: smembers, min: 2, max: 2, roles: looking},
	"spop":             {run: spop, min: 2, max: 2, roles: working},
	"zadd":             {run: zadd, min: 4, roles: adding},
	"zrem":             {run: zrem, min: 3, roles: working},
	"zcard":            {run: zcard, min: 2, max: 2, roles: watching},
	"zrange":           {run: zrange, min: 4, max: 4, roles: looking},
	"zrangebyscore":    {run: zrangebyscore, min: 4, max: 4, roles: watching},
	"zremrangebyscore": {run: zremrangebyscore, min: 4, max: 4, roles: working},
	"publish":          {run: publish, min: 3, max: 3, roles: working},
	"subscribe":        {run: subscribe, min: 2, subscribed: true, roles: looking},
	"unsubscribe":      {run: unsubscribe, min: 1, subscribed: true},
	"ping":             {run: ping, min: 1, max: 2, subscribed: true},
	"echo":             {run: echo, min: 2, max: 2},
	"hello":            {run: hello, min: 1, open: true},
	"auth":             {run: auth, min: 2, max: 3, open: true},
	"client":           {run: clientCommand, min: 2, open: true},
	"select":           {run: selectCommand, min: 2, max: 2},
	"info":             {run: info, min: 1, roles: looking},
	"quit":             {run: quit, min: 1, open: true, subscribed: true},
}
