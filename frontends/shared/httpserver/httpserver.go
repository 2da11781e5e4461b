// Package httpserver makes the net/http servers of the program. Each of them ends clients that send or read slowly, or
// are silent. It also has the homes of requests (home.go), which the API and the gateway of a node share.
package httpserver

import (
	"net/http"
	"time"
)

// Limits that are the same for all servers.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// New makes a server. A request, with its body, must arrive within read, and its response must be taken within write
// after the header has come, which includes the time of the handler. A header must arrive within 10 seconds and has at
// most 64 KiB. A connection is idle for at most 2 minutes. The caller may set the other fields before the server
// serves.
func New(h http.Handler, read, write time.Duration) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: read, WriteTimeout: write, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader,
	}
}
