package conveyor

import (
	"broker/core"
)

// command is a row of the table of commands. run appends the reply, which rests on the commit; a reply of nothing comes later.
type command struct {
	run        func(s *session, b []byte, args []string) ([]byte, core.Commit)
	min, max   int  // words, the name included; max zero: no limit
	open       bool // without a password too
	subscribed bool // while the client is subscribed
}

// commands are what Conveyor's client, worker and pages send. Any other command is refused.
var commands = map[string]command{
	"lpush":            {run: lpush, min: 3},
	"brpop":            {run: brpop, min: 3},
	"rpop":             {run: rpop, min: 2, max: 2},
	"llen":             {run: llen, min: 2, max: 2},
	"lrange":           {run: lrange, min: 4, max: 4},
	"lrem":             {run: lrem, min: 4, max: 4},
	"set":              {run: set, min: 3},
	"get":              {run: get, min: 2, max: 2},
	"del":              {run: del, min: 2},
	"incr":             {run: incr, min: 2, max: 2},
	"expire":           {run: expire, min: 3, max: 4},
	"sadd":             {run: sadd, min: 3},
	"srem":             {run: srem, min: 3},
	"scard":            {run: scard, min: 2, max: 2},
	"smembers":         {run: smembers, min: 2, max: 2},
	"spop":             {run: spop, min: 2, max: 2},
	"zadd":             {run: zadd, min: 4},
	"zrem":             {run: zrem, min: 3},
	"zcard":            {run: zcard, min: 2, max: 2},
	"zrange":           {run: zrange, min: 4, max: 4},
	"zrangebyscore":    {run: zrangebyscore, min: 4, max: 4},
	"zremrangebyscore": {run: zremrangebyscore, min: 4, max: 4},
	"publish":          {run: publish, min: 3, max: 3},
	"subscribe":        {run: subscribe, min: 2, subscribed: true},
	"unsubscribe":      {run: unsubscribe, min: 1, subscribed: true},
	"ping":             {run: ping, min: 1, max: 2, subscribed: true},
	"echo":             {run: echo, min: 2, max: 2},
	"hello":            {run: hello, min: 1, open: true},
	"auth":             {run: auth, min: 2, max: 3, open: true},
	"client":           {run: clientCommand, min: 2, open: true},
	"select":           {run: selectCommand, min: 2, max: 2},
	"info":             {run: info, min: 1},
	"quit":             {run: quit, min: 1, open: true, subscribed: true},
}
