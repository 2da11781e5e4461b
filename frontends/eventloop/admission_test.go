package eventloop

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"broker/frontends"
)

// guests is a setting: clients have no rights until they send login, which they must do within a time.
func guests(loginFor time.Duration) setting {
	return func(f *fixture, _ *Options, _ *Listener) {
		f.toy.guests, f.toy.bounds.LoginFor = true, loginFor
	}
}

func TestAClientWithoutRightsMaySendLittleInput(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		guest, member := dial(t), dial(t)
		member.send("login\n")
		const size = frontends.MaxInputWithoutRights
		for _, c := range []*client{guest, member} {
			go func() { // ends with the connection
				// The guest's input is not read to the end.
				_, _ = fmt.Fprintf(c, "body %d\n%s\n", 2*size, strings.Repeat("x", 2*size))
			}()
		}
		if got := guest.wantEnd(); got != frontends.DismissInput+"\n" {
			t.Errorf("a client without rights receives %.80q", got)
		}
		if _, err := member.r.ReadString('\n'); err != nil {
			t.Errorf("a client with rights: %v", err)
		}
		if n := f.Counts()["toy"].Dismissed; n != 1 {
			t.Errorf("%d connections are counted as dismissed", n)
		}
		if !strings.Contains(f.log.String(), `"limit":"input_without_rights"`) {
			t.Errorf("the log has no line about it: %s", f.log)
		}
	}, guests(patience))
}

func TestAClientMustLogInInTime(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		silent, member := dial(t), dial(t)
		member.send("login\n")
		if got := silent.wantEnd(); got != frontends.DismissLogin+"\n" {
			t.Errorf("a client that does not log in receives %.80q", got)
		}
		member.send("echo here\n")
		member.want("here")
		if n := f.Counts()["toy"].Dismissed; n != 1 {
			t.Errorf("%d connections are counted as dismissed", n)
		}
	}, guests(time.Second))
}

// Input behind a command that waits stays in the kernel, also the input of a client without rights.
func TestInputBehindAWaitingCommandDismissesNobody(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		c.send("later on\n")
		go func() { // ends with the connection; a failure shows below
			_, _ = io.WriteString(c, strings.Repeat("echo "+strings.Repeat("x", 994)+"\n", 300))
		}()
		eventually(t, "not read", func() bool { return f.count(func(c *conn) bool { return c.paused }) == 1 })
		close(f.toy.release)
		c.want("on")
		for range 300 {
			c.want(strings.Repeat("x", 994))
		}
	}, guests(patience), withheld)
}
