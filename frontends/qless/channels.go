package qless

import (
	"github.com/tidwall/redcon"

	"broker/core"
)

func subscribe(s *session, b []byte, args []string) ([]byte, core.Commit) {
	return s.front.messages.Subscribe(&s.Subscriber, b, args[1:]), 0
}

func psubscribe(s *session, b []byte, args []string) ([]byte, core.Commit) {
	s.Subscriber.Holder = s.Holder()
	return s.front.messages.SubscribePatterns(&s.Subscriber, b, args[1:]), 0
}

func unsubscribe(s *session, b []byte, args []string) ([]byte, core.Commit) {
	s.deliverMessages() // of the channels that the client is leaving
	return s.front.messages.Unsubscribe(&s.Subscriber, b, args[1:]), 0
}

func punsubscribe(s *session, b []byte, args []string) ([]byte, core.Commit) {
	s.deliverMessages()
	return s.front.messages.UnsubscribePatterns(&s.Subscriber, b, args[1:]), 0
}

// publish channel message
func publish(s *session, b []byte, args []string) ([]byte, core.Commit) {
	return redcon.AppendInt(b, int64(s.front.messages.Publish(args[1], args[2], 0))), 0
}

// publishAll queues the messages of a command. They wait for its commit.
func (f *Frontend) publishAll(messages []message) {
	for _, m := range messages {
		f.messages.Publish(m.channel, m.payload, f.newest)
	}
}
