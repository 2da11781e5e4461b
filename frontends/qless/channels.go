package qless

import "github.com/tidwall/redcon"

func subscribe(s *session, b []byte, args []string) []byte {
	return s.front.messages.Subscribe(&s.Subscriber, b, args[1:])
}

func psubscribe(s *session, b []byte, args []string) []byte {
	s.Subscriber.Holder = s.Holder()
	return s.front.messages.SubscribePatterns(&s.Subscriber, b, args[1:])
}

func unsubscribe(s *session, b []byte, args []string) []byte {
	s.Deliver() // messages of the channels that the client is leaving
	return s.front.messages.Unsubscribe(&s.Subscriber, b, args[1:])
}

func punsubscribe(s *session, b []byte, args []string) []byte {
	s.Deliver()
	return s.front.messages.UnsubscribePatterns(&s.Subscriber, b, args[1:])
}

// publish channel message
func publish(s *session, b []byte, args []string) []byte {
	s.Costly = true
	return redcon.AppendInt(b, int64(s.front.messages.Publish(args[1], args[2], nil)))
}

// publishAll queues the messages of a command. They wait for its commit.
func (f *Frontend) publishAll(messages []message) {
	for _, m := range messages {
		f.messages.Publish(m.channel, m.payload, &f.client)
	}
}
