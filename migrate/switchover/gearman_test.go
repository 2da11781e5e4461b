package switchover

import (
	"strings"
	"testing"
)

// res and req are packets of a server and of a client.
func res(typ gearmanType, args ...string) string { return string(newGearmanPacket(typ, args...)) }

func req(typ gearmanType, args ...string) string {
	return strings.Replace(res(typ, args...), "\x00RES", "\x00REQ", 1)
}

func TestGearmanRepliesKeepTheOrderOfPipelinedSubmissions(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	r.cutOver("mail")
	client, server := r.join()
	client.send(req(gearmanSubmitBg, "video", "", "1") + req(gearmanSubmit, "mail", "", "2") + req(gearmanSubmitBg, "video", "", "3"))
	server.want(req(gearmanSubmitBg, "video", "", "1") + req(gearmanSubmitBg, "video", "", "3"))
	broker := r.atBroker()
	broker.want(req(gearmanSubmit, "mail", "", "2"))
	// The broker replies first, also with the result, which waits for its own reply. Both servers count from one.
	broker.send(res(gearmanCreated, "H:a:1") + res(gearmanComplete, "H:a:1", "done"))
	server.send(res(gearmanCreated, "H:a:1"))
	client.want(res(gearmanCreated, "H:a:1") + res(gearmanCreated, "h:a:1") + res(gearmanComplete, "h:a:1", "done"))
	server.send(res(gearmanCreated, "H:a:2"))
	client.want(res(gearmanCreated, "H:a:2"))
	if q := r.Queues()[0]; q.ToBroker != 1 || q.ToServer != 0 {
		t.Errorf("%+v", q)
	}
	r.rollBack("mail")
	client.send(req(gearmanSubmitBg, "mail", "", "4"))
	server.want(req(gearmanSubmitBg, "mail", "", "4"))
	server.send(res(gearmanCreated, "H:a:3"))
	client.want(res(gearmanCreated, "H:a:3"))
	if q := r.Queues()[0]; q.ToBroker != 1 || q.ToServer != 1 {
		t.Errorf("%+v", q)
	}
}

func (r *rig) rollBack(queues ...string) {
	r.t.Helper()
	if err := r.RollBack(queues...); err != nil {
		r.t.Fatal(err)
	}
}

func TestASleepingGearmanWorkerGetsTheBrokersJobsAfterACutOver(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	client, server := r.join()
	hello := req(gearmanClientID, "w1") + req(gearmanOption, "exceptions") + req(gearmanCanDoTimeout, "mail", "30") + req(gearmanCanDo, "video")
	client.send(hello + req(gearmanPreSleep))
	server.want(hello + req(gearmanPreSleep))
	server.send(res(gearmanOption+1, "exceptions"))
	client.want(res(gearmanOption+1, "exceptions"))
	r.cutOver("mail")
	broker := r.atBroker()
	// Functions that are not cut over stay with the server alone.
	broker.want(req(gearmanClientID, "w1") + req(gearmanOption, "exceptions") + req(gearmanCanDoTimeout, "mail", "30") + req(gearmanPreSleep))
	broker.send(res(gearmanOption+1, "exceptions") + res(gearmanNoop))
	client.want(res(gearmanNoop))

	client.send(req(gearmanGrabUniq))
	server.want(req(gearmanGrabUniq))
	server.send(res(gearmanNoJob))
	broker.want(req(gearmanGrabUniq))
	broker.send(res(gearmanAssignUniq, "H:a:7", "mail", "u", "body"))
	client.want(res(gearmanAssignUniq, "h:a:7", "mail", "u", "body"))
	client.send(req(gearmanStatus, "h:a:7", "1", "2") + req(gearmanComplete, "h:a:7", "done"))
	broker.want(req(gearmanStatus, "H:a:7", "1", "2") + req(gearmanComplete, "H:a:7", "done"))

	client.send(req(gearmanGrab)) // the broker's turn
	broker.want(req(gearmanGrab))
	broker.send(res(gearmanNoJob))
	server.want(req(gearmanGrab))
	server.send(res(gearmanAssign, "H:a:7", "mail", "body"))
	client.want(res(gearmanAssign, "H:a:7", "mail", "body"))
	client.send(req(gearmanFail, "H:a:7"))
	server.want(req(gearmanFail, "H:a:7"))

	client.send(req(gearmanGrab))
	server.want(req(gearmanGrab))
	server.send(res(gearmanNoJob))
	broker.want(req(gearmanGrab))
	broker.send(res(gearmanNoJob))
	client.want(res(gearmanNoJob))

	r.cutOver("video")
	broker.want(req(gearmanCanDo, "video"))
	client.send(req(gearmanCantDo, "mail") + req(gearmanReset))
	broker.want(req(gearmanCantDo, "mail") + req(gearmanReset))
	server.want(req(gearmanCantDo, "mail") + req(gearmanReset))
}

func TestGearmanStatusComesFromTheSideOfTheJob(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	r.cutOver("mail")
	client, server := r.join()
	client.send(req(gearmanGetStatus, "H:a:1"))
	server.want(req(gearmanGetStatus, "H:a:1"))
	server.send(res(gearmanStatusRes, "H:a:1", "1", "0", "0", "0"))
	client.want(res(gearmanStatusRes, "H:a:1", "1", "0", "0", "0"))
	client.send(req(gearmanGetStatus, "h:a:1"))
	broker := r.atBroker()
	broker.want(req(gearmanGetStatus, "H:a:1"))
	broker.send(res(gearmanStatusRes, "H:a:1", "1", "1", "0", "0"))
	client.want(res(gearmanStatusRes, "h:a:1", "1", "1", "0", "0"))
	// A unique is asked for at the server first.
	client.send(req(gearmanGetUnique, "u"))
	server.want(req(gearmanGetUnique, "u"))
	server.send(res(gearmanUniqueRes, "u", "0", "0", "0", "0", "0"))
	broker.want(req(gearmanGetUnique, "u"))
	broker.send(res(gearmanUniqueRes, "u", "1", "0", "0", "0", "1"))
	client.want(res(gearmanUniqueRes, "u", "1", "0", "0", "0", "1"))
}

func TestGearmanTextIsTheServers(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	r.cutOver("mail")
	client, server := r.join()
	client.send("status\nversion\n" + req(gearmanEcho, "x"))
	server.want("status\nversion\n" + req(gearmanEcho, "x"))
	server.send("mail\t1\t0\t1\n.\nOK 1.1\n" + res(gearmanEcho+1, "x"))
	client.want("mail\t1\t0\t1\n.\nOK 1.1\n" + res(gearmanEcho+1, "x"))
}

func TestAGearmanSubmissionWithoutTheBrokerIsRefused(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	_ = r.broker.Close() // the broker is down
	r.cutOver("mail")
	client, server := r.join()
	client.send(req(gearmanSubmitBg, "mail", "", "1") + req(gearmanSubmitBg, "video", "", "2"))
	server.want(req(gearmanSubmitBg, "video", "", "2"))
	server.send(res(gearmanCreated, "H:a:1"))
	client.want("\x00RES\x00\x00\x00\x13") // ERROR
	head := make([]byte, 4)
	if _, err := client.Read(head); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, head[3])
	if _, err := client.Read(text); err != nil || !strings.HasPrefix(string(text), "QUEUE_ERROR\x00the broker cannot be reached") {
		t.Errorf("%q, %v", text, err)
	}
	client.want(res(gearmanCreated, "H:a:1"))
}

func TestAGearmanWorkerSurvivesTheLossOfTheBroker(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	r.cutOver("mail")
	client, server := r.join()
	client.send(req(gearmanCanDo, "mail"))
	server.want(req(gearmanCanDo, "mail"))
	broker := r.atBroker()
	broker.want(req(gearmanCanDo, "mail"))
	client.send(req(gearmanGrab))
	server.want(req(gearmanGrab))
	server.send(res(gearmanNoJob))
	broker.want(req(gearmanGrab))
	broker.send(res(gearmanAssign, "H:a:1", "mail", "x"))
	client.want(res(gearmanAssign, "h:a:1", "mail", "x"))
	client.send(req(gearmanGrab))
	broker.want(req(gearmanGrab))
	_ = broker.Close() // with an unanswered request
	server.want(req(gearmanGrab))
	server.send(res(gearmanNoJob))
	client.want(res(gearmanNoJob))
	broker = r.atBroker() // tried again
	broker.want(req(gearmanCanDo, "mail"))
	// The worker has lost the job of the lost connection.
	client.send(req(gearmanComplete, "h:a:1", "done") + req(gearmanPreSleep))
	server.want(req(gearmanPreSleep))
	broker.want(req(gearmanPreSleep))
}

func TestAGearmanClientLearnsThatItsResultsAreLost(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	r.cutOver("mail")
	client, server := r.join()
	client.send(req(gearmanSubmit, "mail", "", "x"))
	broker := r.atBroker()
	broker.want(req(gearmanSubmit, "mail", "", "x"))
	broker.send(res(gearmanCreated, "H:a:1"))
	client.want(res(gearmanCreated, "h:a:1"))
	_ = broker.Close() // before the result
	client.wantEnd()
	server.wantEnd()
}

func TestAHalfClosedGearmanClientGetsTheBrokersResult(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	r.cutOver("mail")
	client, server := r.join()
	client.send(req(gearmanSubmit, "mail", "", "x"))
	broker := r.atBroker()
	broker.want(req(gearmanSubmit, "mail", "", "x"))
	broker.send(res(gearmanCreated, "H:a:1"))
	client.want(res(gearmanCreated, "h:a:1"))
	closeWrite(client.Conn)
	server.wantEnd()
	_ = server.Close() // as gearmand does
	broker.wantEnd()
	broker.send(res(gearmanComplete, "H:a:1", "done"))
	client.want(res(gearmanComplete, "h:a:1", "done"))
	_ = broker.Close() // the conversation is over
	client.wantEnd()
}

func TestGearmanBytesOfAnotherProtocolEndTheConnection(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	for _, bad := range []string{"\x00XYZ\x00\x00\x00\x07\x00\x00\x00\x00", "\x00REQ\x00\x00\x00\x07\xff\xff\xff\xff", strings.Repeat("x", 2*maxLine)} {
		client, server := r.join()
		client.send(bad)
		server.wantEnd()
		_ = server.Close() // as gearmand does
		client.wantEnd()
	}
}
