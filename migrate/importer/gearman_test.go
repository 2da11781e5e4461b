package importer

import (
	"bufio"
	"net"
	"strings"
	"testing"

	"broker/frontends/gearman/packet"
	"broker/migrate/wire"
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

// The broker may have taken jobs whose answers are lost with a connection. It recognises them by their uniques when
// they are submitted again.
func TestJobsWithoutAUniqueAreSubmittedAgainUnderTheSameUnique(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const jobs = 3
	submitted := make(chan string, 2*jobs)
	read := func(c net.Conn, in *bufio.Reader, answer bool) bool {
		p, err := wire.ReadPacket(in, packet.RequestMagic, wire.MaxLine)
		if err != nil {
			return false
		}
		kind := packet.EchoRes
		if p.Type() != packet.EchoReq {
			kind = packet.JobCreated
			submitted <- string(p.Arg(1))
		}
		if answer { // an answer that is missing fails the test
			_, _ = c.Write(packet.Append(nil, packet.AnswerMagic, kind, []byte("H:a:1")))
		}
		return true
	}
	first := make(chan bool, 1)
	first <- true
	servers := Servers{Target: answer(t, l, func(c net.Conn) {
		in := bufio.NewReader(c)
		select {
		case <-first:
			for range jobs {
				read(c, in, false)
			}
		default:
			for read(c, in, true) {
			}
		}
	})}
	conn, _, err := servers.dial(servers.Target, GearmanPort)
	if err != nil {
		t.Fatal(err)
	}
	g := &gearman{servers: servers, to: newGearmanConn(conn)}
	defer func() { _ = g.to.Close() }()
	var list []*gearmanJob
	for _, unique := range []string{"", "", "u"} {
		list = append(list, &gearmanJob{function: []byte("f"), unique: []byte(unique), body: []byte("b")})
	}
	settled, err := g.submitBackground(list, make(map[*gearmanJob]string))
	if err != nil || settled != jobs {
		t.Fatalf("%d settled, %v", settled, err)
	}
	times := make(map[string]int)
	for range 2 * jobs {
		times[<-submitted]++
	}
	if len(times) != jobs || times["u"] != 2 || times[""] > 0 {
		t.Errorf("uniques, and how often each was submitted: %v", times)
	}
}
