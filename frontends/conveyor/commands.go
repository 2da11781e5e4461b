package conveyor

import (
	"broker/access"
	"broker/frontends/shared/resp"
)

// command is a row of the table of commands. A client needs one of the roles for at least one queue. The broker also
// checks the queues of changed jobs.
type command = resp.Command[*session]

// Sufficient roles of a command.
var (
	consume          = []access.Role{access.Consume}
	read             = []access.Role{access.Read}
	readOrConsume    = []access.Role{access.Read, access.Consume}
	produceOrConsume = []access.Role{access.Produce, access.Consume}
)

// commands are the commands of Conveyor's client, worker and web pages. Any other command is refused.
var commands = map[string]command{
	"lpush":            {Run: lpush, Min: 3, Roles: produceOrConsume},
	"brpop":            {Run: brpop, Min: 3, Roles: consume},
	"rpop":             {Run: rpop, Min: 2, Max: 2, Roles: consume},
	"llen":             {Run: llen, Min: 2, Max: 2, Roles: read},
	"lrange":           {Run: lrange, Min: 4, Max: 4, Roles: read},
	"lrem":             {Run: lrem, Min: 4, Max: 4, Roles: []access.Role{access.Operate}},
	"set":              {Run: set, Min: 3, Roles: consume},
	"get":              {Run: get, Min: 2, Max: 2, Roles: readOrConsume},
	"del":              {Run: del, Min: 2, Roles: consume},
	"incr":             {Run: incr, Min: 2, Max: 2, Roles: consume},
	"expire":           {Run: expire, Min: 3, Max: 4, Roles: consume},
	"sadd":             {Run: sadd, Min: 3, Roles: consume},
	"srem":             {Run: srem, Min: 3, Roles: consume},
	"scard":            {Run: scard, Min: 2, Max: 2, Roles: readOrConsume},
	"smembers":         {Run: smembers, Min: 2, Max: 2, Roles: read},
	"spop":             {Run: spop, Min: 2, Max: 2, Roles: consume},
	"zadd":             {Run: zadd, Min: 4, Roles: produceOrConsume},
	"zrem":             {Run: zrem, Min: 3, Roles: consume},
	"zcard":            {Run: zcard, Min: 2, Max: 2, Roles: readOrConsume},
	"zrange":           {Run: zrange, Min: 4, Max: 4, Roles: read},
	"zrangebyscore":    {Run: zrangebyscore, Min: 4, Max: 4, Roles: readOrConsume},
	"zremrangebyscore": {Run: zremrangebyscore, Min: 4, Max: 4, Roles: consume},
	"publish":          {Run: publish, Min: 3, Max: 3, Roles: consume},
	"subscribe":        {Run: subscribe, Min: 2, Subscribed: true, Roles: read},
	"unsubscribe":      {Run: unsubscribe, Min: 1, Subscribed: true},
	"ping":             {Run: (*session).Ping, Min: 1, Max: 2, Subscribed: true},
	"echo":             {Run: (*session).Echo, Min: 2, Max: 2},
	"hello":            {Run: (*session).Hello, Min: 1, Open: true},
	"auth":             {Run: (*session).Auth, Min: 2, Max: 3, Open: true},
	"client":           {Run: (*session).ClientCommand, Min: 2, Open: true},
	"select":           {Run: (*session).Select, Min: 2, Max: 2},
	"info":             {Run: info, Min: 1, Roles: read},
	"quit":             {Run: (*session).Quit, Min: 1, Open: true, Subscribed: true},
}
