package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"broker/access"
	"broker/operate/service"
)

// login starts a session of a principal without roles, or of an administrator if the name is empty.
func login(c *Console, name string) *http.Request {
	caller := service.Caller{Principal: access.Everyone}
	if name != "" {
		control := &access.Control{}
		control.Load([]access.Entry{{Name: name}})
		caller.Principal = control.Default(name)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.AddCookie(&http.Cookie{Name: sessionCookie, Value: c.sessions.start(caller)})
	return r
}

func TestManyLoginsOfOnePrincipalEndOnlyItsOwn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	c := newConsole(t, &now)
	const room = 200 // sessions, instead of maxSessions
	c.sessions.bySecret, c.sessions.pool = make(map[string]*session), access.NewPool(room)
	in := func(r *http.Request) bool {
		_, ok := c.sessions.caller(r)
		return ok
	}
	root, other := login(c, ""), login(c, "other")
	first := login(c, "loud")
	for i := range room + 50 {
		now = now.Add(time.Millisecond)
		if last := login(c, "loud"); !in(last) {
			t.Fatalf("login %d does not hold", i)
		}
	}
	if !in(root) || !in(other) {
		t.Errorf("root is logged in: %v, another principal: %v", in(root), in(other))
	}
	if in(first) {
		t.Error("a principal has more than its share of sessions")
	}
	if n := len(c.sessions.bySecret); n > room/2+2 {
		t.Errorf("%d sessions", n)
	}
	for i := range 20 { // each has its own share
		if r := login(c, fmt.Sprintf("tenant-%d", i)); !in(r) {
			t.Errorf("login of tenant %d does not hold", i)
		}
	}
	now = now.Add(sessionIdle)
	for range room / 2 {
		login(c, "next")
	}
	if n := len(c.sessions.bySecret); n != room/2 {
		t.Errorf("%d sessions, want those of one principal: expired ones make room", n)
	}
}
