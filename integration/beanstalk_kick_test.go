package integration_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"broker/integration/beanstalkclient"
	"broker/integration/harness"
)

// longestWaitInKick limits the put and reserve of a bystander. It is generous, because the machine may be busy; the
// actual value is logged.
const longestWaitInKick = time.Second

// A kick of very many jobs holds up no other client of the same event loop.
func TestBeanstalkKickOfManyJobsDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	jobs := 100_000
	if harness.Nightly {
		jobs = 300_000
	}
	_, addr := startBeanstalkPort(t)
	conn, err := net.Dial("tcp", addr)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	in := bufio.NewReaderSize(conn, 1<<20)
	buryMany(t, conn, in, jobs)

	bystander, err := beanstalkclient.Dial(addr)
	check(t, err)
	check(t, bystander.Use("bystander"))
	check(t, bystander.Watch("bystander"))
	_, err = fmt.Fprintf(conn, "kick %d\r\n", 2*jobs)
	check(t, err)
	kicked := make(chan string, 1)
	go func() {
		line, _ := in.ReadString('\n')
		kicked <- line
	}()
	longest, rounds := time.Duration(0), 0
	for answer := ""; answer == ""; rounds++ {
		began := time.Now()
		_, err := bystander.Put(beanstalkclient.Job{TTR: time.Minute, Body: []byte("x")})
		check(t, err)
		job, err := bystander.Reserve(time.Minute)
		check(t, err)
		longest = max(longest, time.Since(began))
		check(t, bystander.Do("DELETED", "delete "+job.ID))
		select {
		case answer = <-kicked:
			if want := fmt.Sprintf("KICKED %d\r\n", jobs); answer != want {
				t.Errorf("the kick is answered with %q, want %q", answer, want)
			}
		default:
		}
	}
	t.Logf("%d rounds of the bystander during the kick, the longest took %v", rounds, longest)
	harness.CheckDuration(t, "a put and a reserve during a kick", longest, longestWaitInKick)
}

// buryMany puts, reserves and buries jobs. Workers run the requests in rounds, so that neither side has to keep many
// replies.
func buryMany(t *testing.T, conn net.Conn, in *bufio.Reader, jobs int) {
	t.Helper()
	const round = 1000
	for range jobs / round {
		_, err := io.WriteString(conn, strings.Repeat("put 0 0 600 1\r\nx\r\nreserve\r\n", round))
		check(t, err)
		var bury strings.Builder
		for range round {
			readLine(t, in, "INSERTED")
			id := strings.Fields(readLine(t, in, "RESERVED"))[1]
			readLine(t, in, "x")
			bury.WriteString("bury " + id + " 0\r\n")
		}
		_, err = io.WriteString(conn, bury.String())
		check(t, err)
		for range round {
			readLine(t, in, "BURIED")
		}
	}
}

// readLine reads a line with a prefix.
func readLine(t *testing.T, in *bufio.Reader, prefix string) string {
	t.Helper()
	got, err := in.ReadString('\n')
	if err != nil || !strings.HasPrefix(got, prefix) {
		t.Fatalf("got %q, %v, want %s", got, err, prefix)
	}
	return got
}
