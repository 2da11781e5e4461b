package httpapi

import (
	"bytes"

	"github.com/rs/zerolog"
)

// libraryLog makes lines of our log of what net/http says.
type libraryLog struct{ log zerolog.Logger }

// Write implements io.Writer. Failed handshakes are logged at level debug only: any stranger can cause as many as he likes.
func (l libraryLog) Write(p []byte) (int, error) {
	level := zerolog.WarnLevel
	if bytes.HasPrefix(p, []byte("http: TLS handshake error")) {
		level = zerolog.DebugLevel
	}
	l.log.WithLevel(level).Bytes("detail", bytes.TrimSpace(p)).Msg("http library")
	return len(p), nil
}
