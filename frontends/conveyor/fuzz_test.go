package conveyor

import (
	"testing"

	"broker/frontends/frontendtest"
)

// FuzzSession sends arbitrary commands: no panic, and the replies do not depend on how the bytes are split.
func FuzzSession(f *testing.F) {
	seeds := [][]byte{[]byte("*1\r\n$4\r\nPING\r\nPING\r\n*-1\r\nPOST / HTTP/1.1\r\n")}
	job := jobIn(1, "q", "payload").encode()
	for _, commands := range [][][]string{
		{
			{"LPUSH", "conv:queue:q", job},
			{"LRANGE", "conv:queue:q", "0", "-1"},
			{"BRPOP", "conv:queue:q", "0"},
			{"SADD", "conv:worker:active:w", idOf(1)},
		},
		{
			{"ZADD", "conv:scheduled", "99999999999", job},
			{"ZRANGE", "conv:scheduled", "-1", "9223372036854775807"},
			{"ZREM", "conv:scheduled", job},
		},
		{
			{"ZADD", "n:workers:active", "1", "w"},
			{"ZRANGEBYSCORE", "n:workers:active", "(-inf", "+inf"},
			{"ZREMRANGEBYSCORE", "n:workers:active", "-inf", "(1"},
		},
		{
			{"SUBSCRIBE", "conv:events"},
			{"PING"},
			{"UNSUBSCRIBE"},
			{"INCR", "conv:hist:x"},
			{"SET", "conv:hist:x", "9223372036854775807", "EX", "1"},
			{"INCR", "conv:hist:x"},
		},
		{
			{"LPUSH", "conv:failed", job},
			{"DEL", "conv:job:x:children"},
			{"SPOP", "conv:worker:active:w"},
			{"SCARD", "conv:jobs:active"},
			{"QUIT"},
		},
	} {
		var in []byte
		for _, words := range commands {
			in = append(in, encodeCommand(words...)...)
		}
		seeds = append(seeds, in)
	}
	frontendtest.SplitFuzz{New: plain}.Fuzz(f, seeds...)
}
