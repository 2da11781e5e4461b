package httpapi

import (
	"bytes"

	"github.com/rs/zerolog"
)

// libraryLog writes the messages of net/http to our log.
type libraryLog struct{ log zerolog.Logger }

// Write implements io.Writer. Failed handshakes are logged at level debug only, because any client can cause many of
// them.
func (l libraryLog) Write(p []byte) (int, error) {
	level := zerolog.WarnLevel
	if bytes.HasPrefix(p, []byte("http: TLS handshake error")) {
		level = zerolog.DebugLevel
	}
	l.log.WithLevel(level).Bytes("detail", bytes.TrimSpace(p)).Msg("http library")
	return len(p), nil
}
