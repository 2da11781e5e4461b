package frontends_test

import (
	"testing"

	"broker/frontends"
)

func TestIsHTTP(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"POST / HTTP/1.1":                  true,
		"GET /status?x=1 HTTP/1.0":         true,
		"OPTIONS * HTTP/1.1":               true,
		"PRI * HTTP/2.0":                   true,
		"CONNECT 127.0.0.1:4730 HTTP/1.1":  true,
		"GET http://127.0.0.1/ HTTP/1.1":   true,
		"status / HTTP/1.1":                true,
		"GET  /  HTTP/1.1":                 true,
		"Host: 127.0.0.1:4730":             true,
		"hOST:x":                           true,
		"":                                 false,
		"Hos":                              false,
		"hostname":                         false,
		"status":                           false,
		"create function HTTP/1.1":         false,
		"lease HTTP/1.1 0":                 false,
		"lease a.b HTTP 0":                 false,
		"add x / 1 2 HTTP/1.1":             false,
		"show / jobs":                      false,
		"drop function http://127.0.0.1/x": false,
	} {
		if got := frontends.IsHTTP([]byte(line)); got != want {
			t.Errorf("IsHTTP(%q) = %v, want %v", line, got, want)
		}
	}
}
