package crossprotocol

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/beanstalk"
	"broker/frontends/conveyor"
	"broker/frontends/faktory"
	"broker/frontends/gearman"
	"broker/frontends/qless"
	"broker/frontends/sqs"
	"broker/frontends/workq"
)

// rolePorts are the protocols with a request for each command. An empty request means that its subcommands have their
// own rows.
func rolePorts() []rolePort {
	return []rolePort{
		workqRoles(), gearmanRoles(), faktoryRoles(), qlessRoles(), conveyorRoles(), beanstalkRoles(), sqsRoles(),
	}
}

func workqRoles() rolePort {
	const newID = "6ba7b810-9dad-41d1-80b4-00c04fd430cf"
	return rolePort{
		name: "Workq", protocol: core.Workq, folder: "workq", tables: []string{"commands"},
		refusals: []string{"-CLIENT-ERROR Not allowed"},
		make:     func(b *access.Guard) frontends.Frontend { return workq.New(b, workq.Options{}) },
		requests: map[string]string{
			"add":                    "add " + newID + " q 1000 60000 1\r\nx\r\n",
			"schedule":               "schedule " + newID + " q 1000 60000 2031-01-01T00:00:00Z 1\r\nx\r\n",
			"run":                    "run " + newID + " q 1000 1 1\r\nx\r\n",
			"result":                 "result " + readyID + " 0\r\n",
			"lease":                  "lease q 0\r\n",
			"complete":               "complete " + leasedID + " 1\r\nx\r\n",
			"fail":                   "fail " + leasedID + " 1\r\nx\r\n",
			"delete":                 "delete " + readyID + "\r\n",
			"inspect":                "",
			"inspect job":            "inspect job " + readyID + "\r\n",
			"inspect jobs":           "inspect jobs q 0 10\r\n",
			"inspect scheduled-jobs": "inspect scheduled-jobs q 0 10\r\n",
			"inspect queue":          "inspect queue q\r\n",
			"inspect queues":         "inspect queues 0 10\r\n",
			"inspect server":         "inspect server\r\n",
		},
	}
}

func gearmanRoles() rolePort {
	p := func(typ uint32, fields ...string) string { return string(packet(typ, fields...)) }
	submit := []string{"q", "", "x"}
	return rolePort{
		name: "Gearman", protocol: core.Gearman, folder: "gearman", tables: []string{"commands", "textCommands"},
		refusals: []string{"NOT_ALLOWED"},
		make: func(b *access.Guard) frontends.Frontend {
			return gearman.New(b,
				gearman.Options{Handles: core.NewHandleFormat("H:h"), AllowShutdown: true, Shutdown: func(bool) {}})
		},
		requests: map[string]string{
			"canDo": p(1, "q"), "cantDo": p(2, "q"), "resetAbilities": p(3), "preSleep": p(4),
			"submitJob": p(7, submit...), "grabJob": p(9),
			"workStatus": p(12, "H:h:1", "1", "2"), "workComplete": p(13, "H:h:1", "x"), "workFail": p(14, "H:h:1"),
			"getStatus": p(15, "H:h:2"),
			"echoReq":   p(16, "x"), "submitJobBg": p(18, submit...), "submitJobHigh": p(21, submit...),
			"setClientID":  p(22, "me"),
			"canDoTimeout": p(23, "q", "10"), "workException": p(25, "H:h:1", "x"), "optionReq": p(26, "exceptions"),
			"workData":    p(28, "H:h:1", "x"),
			"workWarning": p(29, "H:h:1", "x"), "grabJobUniq": p(30), "submitJobHighBg": p(32, submit...),
			"submitJobLow":   p(33, submit...),
			"submitJobLowBg": p(34, submit...), "submitJobSched": p(35, "q", "", "0", "0", "1", "1", "1", "x"),
			"submitJobEpoch":  p(36, "q", "", "1900000000", "x"),
			"submitReduceJob": p(37, "q", "", "r", "x"), "submitReduceJobBg": p(38, "q", "", "r", "x"),
			"grabJobAll": p(39), "getStatusUnique": p(41, "u"),

			"status": "status\r\n", "prioritystatus": "prioritystatus\r\n", "workers": "workers\r\n",
			"version": "version\r\n", "verbose": "verbose\r\n",
			"getpid": "getpid\r\n", "show": "", "show jobs": "show jobs\r\n",
			"show unique jobs": "show unique jobs\r\n",
			"cancel":           "", "cancel job": "cancel job H:h:2\r\n", "create": "",
			"create function": "create function new\r\n",
			"drop":            "", "drop function": "drop function q\r\n", "maxqueue": "maxqueue q 10\r\n",
			"shutdown": "shutdown\r\n",
		},
	}
}

func faktoryRoles() rolePort {
	return rolePort{
		name: "Faktory", protocol: core.Faktory, folder: "faktory", tables: []string{"commands"},
		refusals: []string{"not allowed"},
		make: func(b *access.Guard) frontends.Frontend {
			return faktory.New(b, faktory.Options{})
		},
		greet: `HELLO {"v":2,"wid":"mine","hostname":"h","pid":1}` + "\r\n",
		requests: map[string]string{
			"PUSH":  `PUSH {"jid":"new12345678","jobtype":"t","queue":"q","args":[]}` + "\r\n",
			"PUSHB": `PUSHB [{"jid":"new12345678","jobtype":"t","queue":"q","args":[]}]` + "\r\n",
			"FETCH": "FETCH q\r\n", "ACK": `ACK {"jid":"` + leasedID + `"}` + "\r\n",
			"FAIL": `FAIL {"jid":"` + leasedID + `","message":"m","errtype":"e"}` + "\r\n",
			"BEAT": `BEAT {"wid":"mine"}` + "\r\n", "INFO": "INFO\r\n", "FLUSH": "FLUSH\r\n", "END": "END\r\n",
			"MUTATE": `MUTATE {"cmd":"clear","target":"dead"}` + "\r\n",
			"QUEUE":  "", "QUEUE PAUSE": "QUEUE PAUSE q\r\n", "QUEUE PAUSE *": "QUEUE PAUSE *\r\n",
			"QUEUE RESUME": "QUEUE RESUME q\r\n",
			"QUEUE REMOVE": "QUEUE REMOVE q\r\n", "QUEUE LATENCY": "QUEUE LATENCY q\r\n",
			"BATCH": "", "BATCH NEW": `BATCH NEW {"success":{"jobtype":"s","queue":"q","args":[]}}` + "\r\n",
			"TRACK": "", "TRACK GET": "TRACK GET " + readyID + "\r\n",
			"TRACK SET": `TRACK SET {"jid":"` + leasedID + `","percent":5}` + "\r\n",
		},
	}
}

// qlessCalls are the arguments of each operation of the script, after its now.
func qlessCalls() map[string][]string {
	return map[string][]string{
		"put": {"me", "q", "new", "K", "{}", "0"}, "requeue": {"me", "q", readyID, "K", "{}", "0"}, "get": {readyID},
		"multiget": {readyID},
		"pop":      {"q", "w", "1"}, "peek": {"q", "1"}, "complete": {leasedID, "w", "leased", "{}"},
		"fail":  {leasedID, "w", "g", "m"},
		"retry": {leasedID, "leased", "w"}, "heartbeat": {leasedID, "w"}, "timeout": {leasedID}, "cancel": {readyID},
		"depends": {readyID, "on", leasedID}, "priority": {readyID, "1"}, "tag": {"add", readyID, "t"},
		"track": {"track", readyID}, "failed": {},
		"unfail": {"q", "g"}, "jobs": {"scheduled", "q"}, "queues": {"q"}, "length": {"q"}, "pause": {"q"},
		"unpause": {"q"}, "queue.forget": {"q"},
		"worker.deregister": {"w"}, "stats": {"q", "0"}, "workers": {}, "config.get": {},
		"config.set":   {"grace-period", "1"},
		"config.unset": {"grace-period"}, "log": {readyID, "m"}, "recur": {"q", "r", "K", "{}", "interval", "60", "0"},
		"recur.get": {"r"},
		"unrecur":   {"r"}, "recur.update": {"r", "priority", "1"}, "recur.tag": {"r", "t"}, "recur.untag": {"r", "t"},
	}
}

func qlessRoles() rolePort {
	requests := map[string]string{
		"evalsha": "", "eval": "", "hello": redisCommand("HELLO", "3"), "auth": redisCommand("AUTH", "x"),
		"script":    redisCommand("SCRIPT", "FLUSH"),
		"subscribe": redisCommand("SUBSCRIBE", "c"), "unsubscribe": redisCommand("UNSUBSCRIBE"),
		"psubscribe":   redisCommand("PSUBSCRIBE", "c"),
		"punsubscribe": redisCommand("PUNSUBSCRIBE"), "publish": redisCommand("PUBLISH", "c", "m"),
		"ping": redisCommand("PING"), "echo": redisCommand("ECHO", "x"),
		"info": redisCommand("INFO"), "multi": redisCommand("MULTI"), "exec": redisCommand("EXEC"),
		"discard": redisCommand("DISCARD"),
		"zcard":   redisCommand("ZCARD", "ql:queues"), "zscore": redisCommand("ZSCORE", "ql:queues", "q"),
		"client": redisCommand("CLIENT", "GETNAME"),
		"select": redisCommand("SELECT", "0"), "flushdb": redisCommand("FLUSHDB"), "quit": redisCommand("QUIT"),
		"reset": redisCommand("RESET"),
	}
	for operation, args := range qlessCalls() {
		now := strconv.Itoa(1893456000)
		requests[operation] = redisCommand(append([]string{"EVAL", qlessScript, "0", operation, now}, args...)...)
	}
	return rolePort{
		name: "Qless", protocol: core.Qless, folder: "qless", tables: []string{"commands", "redisCommands"},
		refusals: []string{"NOPERM"},
		make: func(b *access.Guard) frontends.Frontend {
			f := qless.New(b, qless.Options{AllowFlush: true})
			if err := f.Start(); err != nil {
				panic(err)
			}
			return f
		},
		requests: requests,
	}
}

func conveyorRoles() rolePort {
	job := conveyorJob("6ba7b810-9dad-41d1-80b4-00c04fd430cf", "x", 0)
	return rolePort{
		name: "Conveyor", protocol: core.Conveyor, folder: "conveyor", tables: []string{"commands"},
		refusals: []string{"NOPERM"},
		make: func(b *access.Guard) frontends.Frontend {
			return conveyor.New(b, conveyor.Options{})
		},
		requests: map[string]string{
			"lpush": redisCommand("LPUSH", "conv:queue:q", job), "brpop": redisCommand("BRPOP", "conv:queue:q", "1"),
			"rpop": redisCommand("RPOP", "conv:job:x:children"),
			"llen": redisCommand("LLEN", "conv:queue:q"), "lrange": redisCommand("LRANGE", "conv:queue:q", "0", "50"),
			"lrem": redisCommand("LREM", "conv:queue:q", "1", conveyorJob(readyID, "", 0)),
			"set":  redisCommand("SET", "conv:job:x", job),
			"get":  redisCommand("GET", "conv:job:"+leasedID), "del": redisCommand("DEL", "conv:job:"+leasedID),
			"incr":             redisCommand("INCR", "conv:hist:a:b"),
			"expire":           redisCommand("EXPIRE", "conv:hist:a:b", "3600"),
			"sadd":             redisCommand("SADD", "conv:worker:active:w", leasedID),
			"srem":             redisCommand("SREM", "conv:worker:active:w", leasedID),
			"scard":            redisCommand("SCARD", "conv:worker:active:w"),
			"smembers":         redisCommand("SMEMBERS", "conv:worker:active:w"),
			"spop":             redisCommand("SPOP", "conv:worker:active:w"),
			"zadd":             redisCommand("ZADD", "conv:scheduled", "1900000000", job),
			"zrem":             redisCommand("ZREM", "conv:workers:active", "w"),
			"zcard":            redisCommand("ZCARD", "conv:scheduled"),
			"zrange":           redisCommand("ZRANGE", "conv:scheduled", "0", "50"),
			"zrangebyscore":    redisCommand("ZRANGEBYSCORE", "conv:scheduled", "-inf", "+inf"),
			"zremrangebyscore": redisCommand("ZREMRANGEBYSCORE", "conv:queues:active", "-inf", "1"),
			"publish":          redisCommand("PUBLISH", "conv:events", "m"),
			"subscribe":        redisCommand("SUBSCRIBE", "conv:events"),
			"unsubscribe":      redisCommand("UNSUBSCRIBE"), "ping": redisCommand("PING"),
			"echo": redisCommand("ECHO", "x"), "hello": redisCommand("HELLO", "3"),
			"auth": redisCommand("AUTH", "x"), "client": redisCommand("CLIENT", "ID"),
			"select": redisCommand("SELECT", "0"), "info": redisCommand("INFO"),
			"quit": redisCommand("QUIT"),
		},
	}
}

func beanstalkRoles() rolePort {
	return rolePort{
		name: "Beanstalk", protocol: core.Beanstalk, folder: "beanstalk", tables: []string{"commands"},
		refusals: []string{"UNKNOWN_COMMAND"},
		make: func(b *access.Guard) frontends.Frontend {
			return beanstalk.New(b, beanstalk.Options{})
		},
		requests: map[string]string{
			"put": "put 0 0 60 1\r\nx\r\n", "use": "use q\r\n", "watch": "watch q\r\n",
			"ignore":  "watch q\r\nignore default\r\n",
			"reserve": "watch q\r\nreserve\r\n", "reserve-with-timeout": "watch q\r\nreserve-with-timeout 0\r\n",
			"reserve-job": "reserve-job 2\r\n",
			"delete":      "delete 2\r\n", "release": "release 1 0 0\r\n", "bury": "bury 1 0\r\n",
			"touch": "touch 1\r\n", "kick": "use q\r\nkick 1\r\n",
			"kick-job": "kick-job 3\r\n", "peek": "peek 2\r\n", "peek-ready": "use q\r\npeek-ready\r\n",
			"peek-delayed": "use q\r\npeek-delayed\r\n",
			"peek-buried":  "use q\r\npeek-buried\r\n", "stats": "stats\r\n", "stats-job": "stats-job 2\r\n",
			"stats-tube": "stats-tube q\r\n",
			"list-tubes": "list-tubes\r\n", "list-tube-used": "list-tube-used\r\n",
			"list-tubes-watched": "list-tubes-watched\r\n",
			"pause-tube":         "pause-tube q 1\r\n", "quit": "quit\r\n",
		},
	}
}

// sqsRoles are the actions with their members. Actions on a queue name q.
func sqsRoles() rolePort {
	const entry = `"Entries":[{"Id":"1","ReceiptHandle":"x"}]`
	return rolePort{
		name: "SQS", protocol: core.SQS, folder: "sqs", tables: []string{"commands"},
		refusals: []string{"AccessDenied"}, ask: askSQS,
		requests: map[string]string{
			"CreateQueue": `"QueueName":"q"`, "ListQueues": `"MaxResults":5`, "GetQueueUrl": `"QueueName":"q"`,
			"DeleteQueue": " ", "PurgeQueue": " ",
			"GetQueueAttributes": `"AttributeNames":["All"]`, "SetQueueAttributes": `"Attributes":{"DelaySeconds":"1"}`,
			"TagQueue": `"Tags":{"a":"b"}`, "UntagQueue": `"TagKeys":["a"]`, "ListQueueTags": " ",
			"AddPermission": `"Label":"l","AWSAccountIds":["1"],"Actions":["*"]`, "RemovePermission": `"Label":"l"`,
			"SendMessage": `"MessageBody":"x"`, "SendMessageBatch": `"Entries":[{"Id":"1","MessageBody":"x"}]`,
			"ReceiveMessage": " ", "DeleteMessage": `"ReceiptHandle":"x"`, "DeleteMessageBatch": entry,
			"ChangeMessageVisibility":      `"ReceiptHandle":"x","VisibilityTimeout":1`,
			"ChangeMessageVisibilityBatch": `"Entries":[{"Id":"1","ReceiptHandle":"x","VisibilityTimeout":1}]`,
			"ListDeadLetterSourceQueues":   " ",
			"StartMessageMoveTask":         `"SourceArn":"arn:aws:sqs:us-east-1:000000000000:q"`,
			"ListMessageMoveTasks":         `"SourceArn":"arn:aws:sqs:us-east-1:000000000000:q"`,
			"CancelMessageMoveTask":        `"TaskHandle":"` + sqsTask + `"`,
		},
	}
}

// sqsTask is the handle of a task that moves messages of q: the base64 of JSON with the ARN of q.
const sqsTask = "eyJ0YXNrSWQiOiJ0Iiwic291cmNlQXJuIjoiYXJuOmF3czpzcXM6dXMtZWFzdC0xOjAwMDAwMDAwMDAwMDpxIn0="

// askSQS calls an action as the principal "p".
func askSQS(t *testing.T, b core.Broker, control *access.Control, command, members string) string {
	t.Helper()
	f := sqs.New(access.NewGuard(b, control, core.SQS, "p"), sqs.Options{
		Account: "000000000000", Region: "us-east-1",
	})
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	body := `{"QueueUrl":"http://h/000000000000/q"` + strings.TrimSuffix(","+strings.TrimSpace(members), ",") + `}`
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", "AmazonSQS."+command)
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Body.String()
}
