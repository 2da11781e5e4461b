package conveyor

import "broker/frontends/frontendtest"

// exchanges are those of the shared suite. The first word of the last command is its name.
func exchanges() (all []frontendtest.Exchange) {
	first := jobIn(1, "suite", "body").encode()
	take := []string{"BRPOP", "conv:queue:suite", "0"}
	started := []string{"SADD", "conv:worker:active:w", idOf(1)}
	scheduled := jobIn(9, "suite", "x").encode()
	plan := []string{"ZADD", "conv:scheduled", "4000000000", scheduled}
	for _, words := range [][][]string{
		{{"lpush", "conv:queue:suite", jobIn(9, "suite", "x").encode()}},
		{{"lpush", "conv:queue:suite", first}},
		{{"brpop", "conv:queue:suite", "0"}},
		{{"rpop", "conv:job:" + idOf(1) + ":children"}},
		{{"llen", "conv:queue:suite"}},
		{{"lrange", "conv:queue:suite", "0", "-1"}},
		{{"lrange", "conv:failed", "0", "-1"}},
		{{"lrem", "conv:failed", "1", first}},
		{take, {"set", "conv:job:" + idOf(1), first}},
		{take, started, {"get", "conv:job:" + idOf(1)}},
		{{"get", "conv:job:" + idOf(9)}},
		{take, started, {"srem", "conv:jobs:active", idOf(1)}},
		{take, started, {"srem", "conv:worker:active:w", idOf(1)}},
		{take, {"SREM", "conv:jobs:active", idOf(1)}, {"del", "conv:job:" + idOf(1)}},
		{{"incr", "conv:hist:x"}},
		{{"INCR", "conv:hist:x"}, {"get", "conv:hist:x"}},
		{{"INCR", "conv:hist:x"}, {"expire", "conv:hist:x", "60"}},
		{take, {"sadd", "conv:worker:active:w", idOf(1)}},
		{{"scard", "conv:jobs:active"}},
		{{"scard", "conv:job:" + idOf(1) + ":active"}},
		{{"smembers", "conv:jobs:active"}},
		{take, started, {"spop", "conv:worker:active:w"}},
		{{"zadd", "conv:scheduled", "4000000000", scheduled}},
		{{"zadd", "conv:workers:active", "4000000000", "w"}},
		{plan, {"zrem", "conv:scheduled", scheduled}},
		{{"zrem", "conv:scheduled", scheduled}},
		{plan, {"zcard", "conv:scheduled"}},
		{plan, {"zrange", "conv:scheduled", "0", "-1"}},
		{plan, {"zrangebyscore", "conv:scheduled", "0", "4000000000"}},
		{{"ZADD", "conv:workers:active", "1", "w"}, {"zremrangebyscore", "conv:workers:active", "0", "2"}},
		{{"publish", "conv:events", "x"}},
		{{"subscribe", "conv:events"}},
		{{"unsubscribe"}},
		{{"ping"}},
		{{"echo", "x"}},
		{{"hello"}},
		{{"auth", "x"}},
		{{"client", "ID"}},
		{{"select", "0"}},
		{{"info"}},
		{{"quit"}},
	} {
		last := len(words) - 1
		x := frontendtest.Exchange{Command: words[last][0], Send: string(encodeCommand(words[last]...))}
		for _, w := range words[:last] {
			x.Before += string(encodeCommand(w...))
		}
		all = append(all, x)
	}
	return all
}
