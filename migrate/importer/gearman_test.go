package importer

import (
	"net"
	"strings"
	"testing"

	"broker/frontends/gearman/packet"
)

// leaderless is the Gearman port of a node whose cluster loses its leader once one job is acknowledged.
func leaderless(t *testing.T, acknowledged int) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan int, 1)
	left <- acknowledged
	return answer(t, l, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096)) // what is missing fails the test
		n := <-left
		for range n {
			_, _ = c.Write(packet.Append(nil, packet.AnswerMagic, packet.JobCreated, []byte("H:a:1")))
		}
		left <- 0
	})
}

// What a broker does not answer it has not refused: the jobs are not too large, and the import must not try each.
func TestGearmanPortThatAnswersNothingRefusesNoJob(t *testing.T) {
	t.Parallel()
	for acknowledged := range 3 {
		servers := Servers{Target: leaderless(t, acknowledged)}
		conn, _, err := servers.dial(servers.Target, GearmanPort)
		if err != nil {
			t.Fatal(err)
		}
		g := &gearman{servers: servers, to: newGearmanConn(conn)}
		jobs := make([]*gearmanJob, 3)
		for i := range jobs {
			jobs[i] = &gearmanJob{function: []byte("f"), body: []byte("b")}
		}
		reasons := make(map[*gearmanJob]string)
		settled, err := g.submitBackground(jobs, reasons)
		if err == nil || !strings.Contains(err.Error(), "before it answered") || settled != acknowledged ||
			len(reasons) > 0 {
			t.Errorf("%d acknowledged: %d settled, %v, %d refused", acknowledged, settled, err, len(reasons))
		}
		_ = g.to.Close()
	}
}
