package conveyor

import (
	"broker/frontends/access"
	"broker/frontends/resp"
)

// command is a row of the table of commands. A client needs one of the roles for at least one queue. The broker also checks the
// queues of changed jobs.
type command = resp.Command[*session]

// The roles of workers, and of readers.
var (
	working  = []access.Role{access.Consume}
	looking  = []access.Role{access.Read}
	watching = []access.Role{access.Read, access.Consume}
	adding   = []access.Role{access.Produce, access.Consume}
)

// commands are the commands of Conveyor's client, worker and web pages. Any other command is refused.
var commands = map[string]command{
	"lpush":            {Run: lpush, Min: 3, Roles: adding},
	"brpop":            {Run: brpop, Min: 3, Roles: working},
	"rpop":             {Run: rpop, Min: 2, Max: 2, Roles: working},
	"llen":             {Run: llen, Min: 2, Max: 2, Roles: looking},
	"lrange":           {Run: lrange, Min: 4, Max: 4, Roles: looking},
	"lrem":             {Run: lrem, Min: 4, Max: 4, Roles: []access.Role{access.Operate}},
	"set":              {Run: set, Min: 3, Roles: working},
	"get":              {Run: get, Min: 2, Max: 2, Roles: watching},
	"del":              {Run: del, Min: 2, Roles: working},
	"incr":             {Run: incr, Min: 2, Max: 2, Roles: working},
	"expire":           {Run: expire, Min: 3, Max: 4, Roles: working},
	"sadd":             {Run: sadd, Min: 3, Roles: working},
	"srem":             {Run: srem, Min: 3, Roles: working},
	"scard":            {Run: scard, Min: 2, Max: 2, Roles: watching},
	"smembers":         {Run: smembers, Min: 2, Max: 2, Roles: looking},
	"spop":             {Run: spop, Min: 2, Max: 2, Roles: working},
	"zadd":             {Run: zadd, Min: 4, Roles: adding},
	"zrem":             {Run: zrem, Min: 3, Roles: working},
	"zcard":            {Run: zcard, Min: 2, Max: 2, Roles: watching},
	"zrange":           {Run: zrange, Min: 4, Max: 4, Roles: looking},
	"zrangebyscore":    {Run: zrangebyscore, Min: 4, Max: 4, Roles: watching},
	"zremrangebyscore": {Run: zremrangebyscore, Min: 4, Max: 4, Roles: working},
	"publish":          {Run: publish, Min: 3, Max: 3, Roles: working},
	"subscribe":        {Run: subscribe, Min: 2, Subscribed: true, Roles: looking},
	"unsubscribe":      {Run: unsubscribe, Min: 1, Subscribed: true},
	"ping":             {Run: (*session).Ping, Min: 1, Max: 2, Subscribed: true},
	"echo":             {Run: (*session).Echo, Min: 2, Max: 2},
	"hello":            {Run: (*session).Hello, Min: 1, Open: true},
	"auth":             {Run: (*session).Auth, Min: 2, Max: 3, Open: true},
	"client":           {Run: (*session).ClientCommand, Min: 2, Open: true},
	"select":           {Run: (*session).Select, Min: 2, Max: 2},
	"info":             {Run: info, Min: 1, Roles: looking},
	"quit":             {Run: (*session).Quit, Min: 1, Open: true, Subscribed: true},
}
