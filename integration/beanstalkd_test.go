package integration_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

// beanstalkdScripts are what one connection sends. The replies of both servers must be the same; each script ends with
// a command whose reply is END.
var beanstalkdScripts = []string{
	"put 1024 0 60 5\r\nhello\r\npeek 1\r\nreserve\r\nrelease 1 10 0\r\nstats-job 1\r\nreserve\r\nbury 1 7\r\npeek-buried\r\nkick 1\r\nstats-job 1\r\ndelete 1\r\npeek 1\r\n",
	"list-tube-used\r\nlist-tubes-watched\r\nuse foo\r\nwatch foo\r\nwatch foo\r\nignore bar\r\nignore default\r\nignore foo\r\nstats-tube foo\r\nstats-tube nope\r\npause-tube nope 1\r\npause-tube foo 2\r\npause-tube foo 0\r\n",
	"put\r\nuse\r\ndelete\r\nkick-job\r\nfoo\r\n\r\n reserve\r\nUSE x\r\nstats-job\r\nstats-tube\r\nreserve-job\r\npause-tube\r\nput \r\nuse \r\nreserve \r\nstats \r\n",
	"touch x\r\ntouch 1 2\r\nbury 1\r\nrelease 1 2\r\ndelete 1 \r\ndelete  9\r\ndelete +1\r\ndelete 99999999999999999999\r\nwatch -a\r\nwatch a,b\r\nuse a b\r\nuse  a\r\n",
	"pause-tube x y\r\npause-tube default 1x\r\nkick 0\r\nkick 5\r\nreserve-with-timeout 0\r\nreserve-with-timeout  0\r\nuse a\x00\r\nuse\ta\r\nput 0 0 1 x\r\nput 0 0 1\r\n",
	"use o\r\nput 5 0 9 1\r\na\r\nput 4294967295 0 9 1\r\nc\r\nput 4294967294 0 9 1\r\nd\r\nput 0 0 9 1\r\ne\r\nwatch o\r\nignore default\r\nreserve\r\nreserve\r\nreserve\r\nreserve\r\nreserve-with-timeout 0\r\n",
	"put 5 0 1 1\r\na\r\nreserve\r\nreserve-with-timeout 0\r\nstats\r\nlist-tubes\r\n",
}

// ownStats is the line of stats that beanstalkd does not have.
var ownStats = regexp.MustCompile(`(?m)^broker-version: .*\n`)

// changingStats are the lines of stats that depend on more than the script; the size of a document follows from them.
var changingStats = regexp.MustCompile(
	`(?m)^(OK|(pid|version|rusage-.time|uptime|binlog.*|id|hostname|os|platform|age|time-left|total-.*|current-.*|cmd-.*|job-timeouts)):? .*$`,
)

// A client cannot tell the broker from beanstalkd: raw bytes, as one connection after the other sends them.
func TestBrokerRepliesAsBeanstalkdDoes(t *testing.T) {
	t.Parallel()
	harness.Need(t, "beanstalkd")
	peer, err := server.StartBeanstalkd(t.TempDir())
	check(t, err)
	t.Cleanup(peer.Kill)
	addr := startBeanstalkd(t)
	for _, script := range beanstalkdScripts {
		want := beanstalkdReplies(t, peer.Addr, script)
		if got := ownStats.ReplaceAllString(beanstalkdReplies(t, addr, script), ""); got != want {
			t.Errorf("to %q\n got %q\nwant %q", script, got, want)
		}
	}
}

// startBeanstalkd starts the broker under the name of beanstalkd, with its command line.
func startBeanstalkd(t *testing.T) (addr string) {
	t.Helper()
	addr, err := server.FreeAddr()
	check(t, err)
	host, port := server.Split(addr)
	dir := t.TempDir()
	link := filepath.Join(dir, "beanstalkd")
	check(t, os.Symlink(harness.Binary(t), link))
	p, err := server.Launch(server.Spec{
		Name: "beanstalkd", Argv: []string{link, "-l", host, "-p", port}, Dir: dir, Logs: dir,
	})
	check(t, err)
	t.Cleanup(p.Kill)
	check(t, server.WaitListening(p, addr, harness.Patience))
	return addr
}

// beanstalkdReplies plays a script on a connection of its own. The numbers of its jobs do not matter.
func beanstalkdReplies(t *testing.T, addr, script string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	check(t, err)
	defer func() { _ = conn.Close() }() // everything was read
	check(t, conn.SetDeadline(time.Now().Add(harness.Patience)))
	_, err = io.WriteString(conn, script)
	check(t, err)
	check(t, conn.(*net.TCPConn).CloseWrite())
	all, err := io.ReadAll(conn)
	check(t, err)
	text := strings.ReplaceAll(string(all), "\r\n", "\n")
	return changingStats.ReplaceAllString(text, "$1")
}
