package switchover

import "testing"

func TestBeanstalkdIDsOfTheBrokerAreShownWithAnOffset(t *testing.T) {
	t.Parallel()
	r := setup(t, "beanstalk")
	r.cutOver("mail")
	client, server := r.join()
	client.send("put 0 0 60 1\r\na\r\nuse mail\r\nput 0 0 60 1\r\nb\r\n")
	server.want("put 0 0 60 1\r\na\r\nuse mail\r\n")
	server.send("INSERTED 1\r\nUSING mail\r\n")
	broker := r.atBroker()
	broker.want("use mail\r\n")
	broker.send("USING mail\r\n")
	broker.want("put 0 0 60 1\r\nb\r\n")
	broker.send("INSERTED 1\r\n")
	client.want("INSERTED 1\r\nUSING mail\r\nINSERTED 1125899906842625\r\n")

	for _, c := range []struct{ asked, sent, replied, shown string }{
		{"peek 1125899906842625\r\n", "peek 1\r\n", "FOUND 1 1\r\nb\r\n", "FOUND 1125899906842625 1\r\nb\r\n"},
		{"release 1125899906842625 5 0\r\n", "release 1 5 0\r\n", "RELEASED\r\n", "RELEASED\r\n"},
		{
			"stats-job 1125899906842625\r\n", "stats-job 1\r\n", "OK 18\r\n---\nid: 1\nage: 12\n\r\n",
			"OK 33\r\n---\nid: 1125899906842625\nage: 12\n\r\n",
		},
		{"delete 1125899906842625\r\n", "delete 1\r\n", "DELETED\r\n", "DELETED\r\n"},
		{"reserve-job 1125899906842625\r\n", "reserve-job 1\r\n", "NOT_FOUND\r\n", "NOT_FOUND\r\n"},
		{"touch 1125899906842625\r\n", "touch 1\r\n", "TOUCHED\r\n", "TOUCHED\r\n"},
		{"bury 1125899906842625 1\r\n", "bury 1 1\r\n", "BURIED\r\n", "BURIED\r\n"},
		{"peek 1125899906842625\r\n", "peek 1\r\n", "FOUND 1125899906842624 1\r\nb\r\n", "INTERNAL_ERROR\r\n"},
	} {
		client.send(c.asked)
		broker.want(c.sent)
		broker.send(c.replied)
		client.want(c.shown)
	}
	client.send("delete 1\r\n")
	server.want("delete 1\r\n")
	server.send("DELETED\r\n")
	client.want("DELETED\r\n")
}

func TestBeanstalkdWorkerAlternatesBetweenBothSides(t *testing.T) {
	t.Parallel()
	r := setup(t, "beanstalk")
	client, server := r.join()
	client.send("watch mail\r\nwatch video\r\nignore default\r\nreserve-with-timeout 0\r\n")
	// only tubes of the server: sent in one write
	server.want("watch mail\r\nwatch video\r\nignore default\r\nreserve-with-timeout 0\r\n")
	server.send("WATCHING 2\r\nWATCHING 3\r\nWATCHING 2\r\nTIMED_OUT\r\n")
	client.want("WATCHING 2\r\nWATCHING 3\r\nWATCHING 2\r\nTIMED_OUT\r\n")

	r.cutOver("mail")
	client.send("reserve\r\n")
	broker := r.atBroker()
	broker.want("watch mail\r\n")
	broker.send("WATCHING 2\r\n")
	broker.want("ignore default\r\n")
	broker.send("WATCHING 1\r\n")
	broker.want("reserve-with-timeout 0\r\n")
	broker.send("RESERVED 1 1\r\na\r\n")
	client.want("RESERVED 1125899906842625 1\r\na\r\n")

	client.send("reserve\r\n")
	server.want("reserve-with-timeout 0\r\n")
	server.send("RESERVED 1 1\r\nb\r\n")
	client.want("RESERVED 1 1\r\nb\r\n")

	client.send("reserve-with-timeout 0\r\n")
	broker.want("reserve-with-timeout 0\r\n")
	broker.send("TIMED_OUT\r\n")
	server.want("reserve-with-timeout 0\r\n")
	server.send("TIMED_OUT\r\n")
	client.want("TIMED_OUT\r\n")

	client.send("reserve-with-timeout 30\r\n") // polls both sides
	for range 2 {
		server.want("reserve-with-timeout 0\r\n")
		server.send("TIMED_OUT\r\n")
		broker.want("reserve-with-timeout 0\r\n")
		broker.send("TIMED_OUT\r\n")
		broker, server = server, broker
	}
	server.want("reserve-with-timeout 0\r\n")
	_ = client.Close() // nobody waits any more
	server.send("TIMED_OUT\r\n")
	broker.want("reserve-with-timeout 0\r\n")
	broker.send("DEADLINE_SOON\r\n")
	broker.wantEnd()
}

func TestBeanstalkdKickAndPauseReachBothSides(t *testing.T) {
	t.Parallel()
	r := setup(t, "beanstalk")
	r.cutOver("mail")
	client, server := r.join()
	client.send("use mail\r\nkick 5\r\n")
	server.want("use mail\r\n")
	server.send("USING mail\r\n")
	server.want("kick 5\r\n")
	server.send("KICKED 2\r\n")
	broker := r.atBroker()
	broker.want("use mail\r\n")
	broker.send("USING mail\r\n")
	broker.want("kick 3\r\n")
	broker.send("KICKED 1\r\n")
	client.want("USING mail\r\nKICKED 3\r\n")

	client.send("pause-tube mail 9\r\n")
	server.want("pause-tube mail 9\r\n")
	server.send("NOT_FOUND\r\n")
	broker.want("pause-tube mail 9\r\n")
	broker.send("PAUSED\r\n")
	client.want("PAUSED\r\n")

	client.send("peek-ready\r\n")
	server.want("peek-ready\r\n")
	server.send("NOT_FOUND\r\n")
	broker.want("peek-ready\r\n")
	broker.send("FOUND 3 1\r\nx\r\n")
	client.want("FOUND 1125899906842627 1\r\nx\r\n")
}

func TestABeanstalkdSubmissionWithoutTheBrokerIsRefused(t *testing.T) {
	t.Parallel()
	r := setup(t, "beanstalk")
	r.cutOver("default")
	client, server := r.join()
	client.send("put 0 0 60 1\r\na\r\n")
	broker := r.atBroker()
	broker.want("put 0 0 60 1\r\na\r\n")
	_, _ = r.broker.Close(), broker.Close() // before its reply: the outcome is unknown
	client.want("INTERNAL_ERROR\r\n")
	client.send("put 0 0 60 1\r\nb\r\n")
	client.want("DRAINING\r\n")
	client.send("reserve-with-timeout 0\r\n") // the server's jobs go on
	server.want("reserve-with-timeout 0\r\n")
	server.send("RESERVED 4 1\r\nc\r\n")
	client.want("RESERVED 4 1\r\nc\r\n")
	r.rollBack("default")
	client.send("put 0 0 60 1\r\nd\r\n")
	server.want("put 0 0 60 1\r\nd\r\n")
	server.send("INSERTED 5\r\n")
	client.want("INSERTED 5\r\n")
}

func TestBeanstalkdClientIsClosedWithItsServer(t *testing.T) {
	t.Parallel()
	r := setup(t, "beanstalk")
	client, server := r.join()
	client.send("reserve\r\n")
	server.want("reserve\r\n")
	_ = server.Close() // while the client waits
	client.wantEnd()
}

func TestReserveEndsWhenItsClientDisconnects(t *testing.T) {
	t.Parallel()
	r := setup(t, "beanstalk")
	client, server := r.join()
	client.send("reserve\r\n")
	server.want("reserve\r\n")
	_ = client.Close() // while it waits
	server.wantEnd()
}
