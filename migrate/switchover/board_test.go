package switchover

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"broker/frontends/gearman/packet"
)

func TestRollBackNeedsACutOver(t *testing.T) {
	t.Parallel()
	b := newBoard()
	if err := b.set(Returned, []string{"mail"}); err == nil {
		t.Error("no error")
	}
	if err := b.set(New, []string{"mail"}); err != nil || b.find("mail").state != New {
		t.Errorf("%v", err)
	}
	if err := b.set(Returned, []string{"mail"}); err != nil || b.find("mail").state != Returned {
		t.Errorf("%v", err)
	}
}

func TestChangeOfQueuesIsAtomic(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "a\x00b", "a\r\nb", strings.Repeat("a", maxName+1)} {
		b := newBoard()
		if err := b.set(New, []string{"mail", bad}); err == nil || b.any() {
			t.Errorf("%q: %v, %v", bad, err, b.list())
		}
	}
	if err := newBoard().set(New, nil); err == nil {
		t.Error("no queue: no error")
	}
}

func TestNumberOfQueuesIsLimited(t *testing.T) {
	t.Parallel()
	names := make([]string, maxQueues+1)
	for i := range names {
		names[i] = strings.Repeat("q", i%1000+1) + string(rune('a'+i/1000))
	}
	b := newBoard()
	if err := b.set(New, names); err == nil || b.any() {
		t.Errorf("%v", err)
	}
	if err := b.set(New, names[1:]); err != nil {
		t.Errorf("%v", err)
	}
}

func TestProtocolsThatCannotBeSwitchedAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"workq", "qless", "smtp"} {
		if _, err := NewSwitch(Options{Protocol: name}); err == nil ||
			!strings.Contains(err.Error(), "beanstalk, faktory, gearman") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCutOverFailsWithoutTheBroker(t *testing.T) {
	t.Parallel()
	for _, protocol := range Protocols() {
		r := setup(t, protocol)
		_ = r.broker.Close() // the broker is down
		if err := r.CutOver("mail"); err == nil || r.any() {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

func TestInvalidAndForeignRequestsChangeNoQueues(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	go func() { _, _ = io.WriteString(r.accept(r.broker, "broker"), res(packet.EchoRes)) }() // the broker serves
	mux, none := http.NewServeMux(), http.NewServeMux()
	r.Serve(mux)
	(*Switch)(nil).Serve(none)
	const cutOver = `{"action":"cut-over","queues":["mail"]}`
	for _, c := range []struct {
		name, remote, host, kind, body string
		mux                            *http.ServeMux
		status                         int
	}{
		{"another machine", "192.0.2.1:9", "127.0.0.1:7430", "application/json", cutOver, mux, http.StatusForbidden},
		{
			"a page under another name", "127.0.0.1:9", "evil.example:7430", "application/json", cutOver, mux,
			http.StatusForbidden,
		},
		{
			"a form of a page", "127.0.0.1:9", "127.0.0.1:7430", "text/plain", cutOver, mux,
			http.StatusUnsupportedMediaType,
		},
		{"no type", "127.0.0.1:9", "127.0.0.1:7430", "", cutOver, mux, http.StatusUnsupportedMediaType},
		{"not JSON", "127.0.0.1:9", "127.0.0.1:7430", "application/json", "queues=mail", mux, http.StatusBadRequest},
		{
			"unknown member", "127.0.0.1:9", "127.0.0.1:7430", "application/json",
			`{"action":"cut-over","queue":"mail"}`, mux, http.StatusBadRequest,
		},
		{
			"unknown action", "127.0.0.1:9", "127.0.0.1:7430", "application/json",
			`{"action":"stop","queues":["mail"]}`, mux, http.StatusConflict,
		},
		{"without a broker", "127.0.0.1:9", "127.0.0.1:7430", "application/json", cutOver, none, http.StatusConflict},
		{
			"roll-back of another queue", "127.0.0.1:9", "[::1]:7430", "application/json",
			`{"action":"roll-back","queues":["mail"]}`, mux, http.StatusConflict,
		},
		{"this machine", "[::1]:9", "localhost:7430", "application/json; charset=utf-8", cutOver, mux, http.StatusOK},
	} {
		req := httptest.NewRequest(http.MethodPost, "/queues", strings.NewReader(c.body))
		req.RemoteAddr, req.Host = c.remote, c.host
		req.Header.Set("Content-Type", c.kind)
		w := httptest.NewRecorder()
		c.mux.ServeHTTP(w, req)
		if w.Code != c.status || (c.status == http.StatusOK) != r.isNew("mail") {
			t.Errorf("%s: status %d, not %d: %s", c.name, w.Code, c.status, w.Body)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: body %s", c.name, w.Body)
		}
	}
}

func (r *rig) isNew(queue string) bool {
	e := r.find(queue)
	return e != nil && e.state == New
}
