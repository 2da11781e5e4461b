package switchover

import (
	"strings"
	"testing"

	"broker/frontends/gearman/packet"
	"broker/migrate/wire"
)

// res and req are packets of a server and of a client.
func res(typ packet.Type, args ...string) string { return string(newGearmanPacket(typ, args...)) }

func req(typ packet.Type, args ...string) string {
	return string(packet.Append(nil, packet.RequestMagic, typ, args...))
}

func TestGearmanRepliesKeepTheOrderOfPipelinedSubmissions(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	r.cutOver("mail")
	client, server := r.join()
	client.send(req(packet.SubmitJobBg, "video", "", "1") + req(packet.SubmitJob, "mail", "", "2") +
		req(packet.SubmitJobBg, "video", "", "3"))
	server.want(req(packet.SubmitJobBg, "video", "", "1") + req(packet.SubmitJobBg, "video", "", "3"))
	broker := r.atBroker()
	broker.want(req(packet.SubmitJob, "mail", "", "2"))
	// The broker replies first, also with the result, which waits for its own reply. Both servers count from one.
	broker.send(res(packet.JobCreated, "H:a:1") + res(packet.WorkComplete, "H:a:1", "done"))
	server.send(res(packet.JobCreated, "H:a:1"))
	client.want(res(packet.JobCreated, "H:a:1") + res(packet.JobCreated, "h:a:1") +
		res(packet.WorkComplete, "h:a:1", "done"))
	server.send(res(packet.JobCreated, "H:a:2"))
	client.want(res(packet.JobCreated, "H:a:2"))
	if q := r.list()[0]; q.ToBroker != 1 || q.ToServer != 0 {
		t.Errorf("%+v", q)
	}
	r.rollBack("mail")
	client.send(req(packet.SubmitJobBg, "mail", "", "4"))
	server.want(req(packet.SubmitJobBg, "mail", "", "4"))
	server.send(res(packet.JobCreated, "H:a:3"))
	client.want(res(packet.JobCreated, "H:a:3"))
	if q := r.list()[0]; q.ToBroker != 1 || q.ToServer != 1 {
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
	hello := req(packet.SetClientID, "w1") + req(packet.OptionReq, "exceptions") +
		req(packet.CanDoTimeout, "mail", "30") + req(packet.CanDo, "video")
	client.send(hello + req(packet.PreSleep))
	server.want(hello + req(packet.PreSleep))
	server.send(res(packet.OptionRes, "exceptions"))
	client.want(res(packet.OptionRes, "exceptions"))
	r.cutOver("mail")
	broker := r.atBroker()
	// Functions that are not cut over stay with the server alone.
	broker.want(req(packet.SetClientID, "w1") + req(packet.OptionReq, "exceptions") +
		req(packet.CanDoTimeout, "mail", "30") + req(packet.PreSleep))
	broker.send(res(packet.OptionRes, "exceptions") + res(packet.Noop))
	client.want(res(packet.Noop))

	client.send(req(packet.GrabJobUniq))
	server.want(req(packet.GrabJobUniq))
	server.send(res(packet.NoJob))
	broker.want(req(packet.GrabJobUniq))
	broker.send(res(packet.JobAssignUniq, "H:a:7", "mail", "u", "body"))
	client.want(res(packet.JobAssignUniq, "h:a:7", "mail", "u", "body"))
	client.send(req(packet.WorkStatus, "h:a:7", "1", "2") + req(packet.WorkComplete, "h:a:7", "done"))
	broker.want(req(packet.WorkStatus, "H:a:7", "1", "2") + req(packet.WorkComplete, "H:a:7", "done"))

	client.send(req(packet.GrabJob)) // the broker's turn
	broker.want(req(packet.GrabJob))
	broker.send(res(packet.NoJob))
	server.want(req(packet.GrabJob))
	server.send(res(packet.JobAssign, "H:a:7", "mail", "body"))
	client.want(res(packet.JobAssign, "H:a:7", "mail", "body"))
	client.send(req(packet.WorkFail, "H:a:7"))
	server.want(req(packet.WorkFail, "H:a:7"))

	client.send(req(packet.GrabJob))
	server.want(req(packet.GrabJob))
	server.send(res(packet.NoJob))
	broker.want(req(packet.GrabJob))
	broker.send(res(packet.NoJob))
	client.want(res(packet.NoJob))

	r.cutOver("video")
	broker.want(req(packet.CanDo, "video"))
	client.send(req(packet.CantDo, "mail") + req(packet.ResetAbilities))
	broker.want(req(packet.CantDo, "mail") + req(packet.ResetAbilities))
	server.want(req(packet.CantDo, "mail") + req(packet.ResetAbilities))
}

func TestGearmanStatusComesFromTheSideOfTheJob(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	r.cutOver("mail")
	client, server := r.join()
	client.send(req(packet.GetStatus, "H:a:1"))
	server.want(req(packet.GetStatus, "H:a:1"))
	server.send(res(packet.StatusRes, "H:a:1", "1", "0", "0", "0"))
	client.want(res(packet.StatusRes, "H:a:1", "1", "0", "0", "0"))
	client.send(req(packet.GetStatus, "h:a:1"))
	broker := r.atBroker()
	broker.want(req(packet.GetStatus, "H:a:1"))
	broker.send(res(packet.StatusRes, "H:a:1", "1", "1", "0", "0"))
	client.want(res(packet.StatusRes, "h:a:1", "1", "1", "0", "0"))
	// A unique is asked for at the server first.
	client.send(req(packet.GetStatusUnique, "u"))
	server.want(req(packet.GetStatusUnique, "u"))
	server.send(res(packet.StatusResUnique, "u", "0", "0", "0", "0", "0"))
	broker.want(req(packet.GetStatusUnique, "u"))
	broker.send(res(packet.StatusResUnique, "u", "1", "0", "0", "0", "1"))
	client.want(res(packet.StatusResUnique, "u", "1", "0", "0", "0", "1"))
}

func TestGearmanTextCommandsGoToTheServer(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	r.cutOver("mail")
	client, server := r.join()
	client.send("status\nversion\n" + req(packet.EchoReq, "x"))
	server.want("status\nversion\n" + req(packet.EchoReq, "x"))
	server.send("mail\t1\t0\t1\n.\nOK 1.1\n" + res(packet.EchoRes, "x"))
	client.want("mail\t1\t0\t1\n.\nOK 1.1\n" + res(packet.EchoRes, "x"))
}

func TestAGearmanSubmissionWithoutTheBrokerIsRefused(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	_ = r.broker.Close() // the broker is down
	r.cutOver("mail")
	client, server := r.join()
	client.send(req(packet.SubmitJobBg, "mail", "", "1") + req(packet.SubmitJobBg, "video", "", "2"))
	server.want(req(packet.SubmitJobBg, "video", "", "2"))
	server.send(res(packet.JobCreated, "H:a:1"))
	client.want("\x00RES\x00\x00\x00\x13") // ERROR
	head := make([]byte, 4)
	if _, err := client.Read(head); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, head[3])
	if _, err := client.Read(text); err != nil ||
		!strings.HasPrefix(string(text), "QUEUE_ERROR\x00the broker cannot be reached") {
		t.Errorf("%q, %v", text, err)
	}
	client.want(res(packet.JobCreated, "H:a:1"))
}

func TestAGearmanWorkerSurvivesTheLossOfTheBroker(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	r.cutOver("mail")
	client, server := r.join()
	client.send(req(packet.CanDo, "mail"))
	server.want(req(packet.CanDo, "mail"))
	broker := r.atBroker()
	broker.want(req(packet.CanDo, "mail"))
	client.send(req(packet.GrabJob))
	server.want(req(packet.GrabJob))
	server.send(res(packet.NoJob))
	broker.want(req(packet.GrabJob))
	broker.send(res(packet.JobAssign, "H:a:1", "mail", "x"))
	client.want(res(packet.JobAssign, "h:a:1", "mail", "x"))
	client.send(req(packet.GrabJob))
	broker.want(req(packet.GrabJob))
	_ = broker.Close() // with an unanswered request
	server.want(req(packet.GrabJob))
	server.send(res(packet.NoJob))
	client.want(res(packet.NoJob))
	broker = r.atBroker() // tried again
	broker.want(req(packet.CanDo, "mail"))
	// The worker has lost the job of the lost connection.
	client.send(req(packet.WorkComplete, "h:a:1", "done") + req(packet.PreSleep))
	server.want(req(packet.PreSleep))
	broker.want(req(packet.PreSleep))
}

func TestGearmanClientIsClosedWhenItsResultsAreLost(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	r.cutOver("mail")
	client, server := r.join()
	client.send(req(packet.SubmitJob, "mail", "", "x"))
	broker := r.atBroker()
	broker.want(req(packet.SubmitJob, "mail", "", "x"))
	broker.send(res(packet.JobCreated, "H:a:1"))
	client.want(res(packet.JobCreated, "h:a:1"))
	_ = broker.Close() // before the result
	client.wantEnd()
	server.wantEnd()
}

func TestAHalfClosedGearmanClientGetsTheBrokersResult(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	r.cutOver("mail")
	client, server := r.join()
	client.send(req(packet.SubmitJob, "mail", "", "x"))
	broker := r.atBroker()
	broker.want(req(packet.SubmitJob, "mail", "", "x"))
	broker.send(res(packet.JobCreated, "H:a:1"))
	client.want(res(packet.JobCreated, "h:a:1"))
	closeWrite(client.Conn)
	server.wantEnd()
	_ = server.Close() // as gearmand does
	broker.wantEnd()
	broker.send(res(packet.WorkComplete, "H:a:1", "done"))
	client.want(res(packet.WorkComplete, "h:a:1", "done"))
	_ = broker.Close() // the conversation is over
	client.wantEnd()
}

func TestGearmanBytesOfAnotherProtocolEndTheConnection(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	for _, bad := range []string{
		"\x00XYZ\x00\x00\x00\x07\x00\x00\x00\x00", "\x00REQ\x00\x00\x00\x07\xff\xff\xff\xff",
		strings.Repeat("x", 2*wire.MaxLine),
	} {
		client, server := r.join()
		client.send(bad)
		server.wantEnd()
		_ = server.Close() // as gearmand does
		client.wantEnd()
	}
}
