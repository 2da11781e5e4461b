package conveyor

import (
	"fmt"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
	"broker/frontends/shared/resp"
)

func info(s *session, b []byte, _ []string) []byte {
	return redcon.AppendBulkString(b,
		fmt.Sprintf("# Server\r\nredis_version:%s\r\nredis_mode:standalone\r\nserver_name:broker\r\n"+
			"# Stats\r\npubsub_dropped:%d\r\n", resp.RedisVersion, s.front.messages.Dropped()))
}

// publish channel message: a worker reports the end of a run.
func publish(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	if k.kind != keyEvents {
		return refuseKey(b, args[1])
	}
	every, p := s.front.queueOf(k.namespace, anyName), s.Principal()
	if !s.mayAnnounce(p, k.namespace, args[2]) && !s.AllowedFor(access.Consume, every) {
		return redcon.AppendError(b, resp.NoPermission(args[0]))
	}
	s.Costly = true
	n := s.front.messages.Publish(args[1], args[2], nil)
	if !p.May(access.Read, every) {
		n = 0 // a client that may not subscribe does not learn who has
	}
	return redcon.AppendInt(b, int64(n))
}

// mayAnnounce reports whether a message is about a job that the client may work on: by the queue that the message
// names, and by the queue of the job, if it exists.
func (s *session) mayAnnounce(p *access.Principal, namespace, message string) bool {
	if p.MayAll(access.Consume) {
		return true
	}
	e, err := parseEnvelope([]byte(message))
	if err != nil || e.uuid == "" || e.queue == "" {
		return false
	}
	if !p.May(access.Consume, s.front.queueOf(namespace, e.queue)) {
		return false
	}
	r := s.unguarded(&core.Inspect{Tag: 1, Ref: core.Ref{ID: e.uuid}, Brief: true})
	return r.Kind != core.Inspected || p.May(access.Consume, r.Info.Queue)
}

// anyName stands for all queues of a namespace: a client may read it only if it may read all of them. Events need that
// right.
const anyName = "\x00"

// subscribe channel...
func subscribe(s *session, b []byte, args []string) []byte {
	for _, channel := range args[1:] {
		if parseKey(channel).kind != keyEvents {
			return refuseKey(b, channel)
		}
		if !s.mayHear(channel) {
			return redcon.AppendError(b, resp.NoPermission(args[0]))
		}
	}
	return s.front.messages.Subscribe(&s.Subscriber, b, args[1:])
}

// mayHear reports whether the client may get the events of a channel.
func (s *session) mayHear(channel string) bool {
	return s.AllowedFor(access.Read, s.front.queueOf(parseKey(channel).namespace, anyName))
}

// unsubscribe [channel...]
func unsubscribe(s *session, b []byte, args []string) []byte {
	s.Connection.Deliver() // messages of the channels that the client is leaving
	return s.front.messages.Unsubscribe(&s.Subscriber, b, args[1:])
}
