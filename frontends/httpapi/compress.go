package httpapi

import (
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// minCompressed is the size from which an answer is compressed, in bytes.
const minCompressed = 2 << 10

// compressed compresses large answers for clients that take that. Events are not: each has to leave at once.
func compressed(next http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(minCompressed), gzhttp.CompressionLevel(1), gzhttp.ContentTypeFilter(func(ct string) bool {
		return !strings.HasPrefix(ct, "text/event-stream") && gzhttp.DefaultContentTypeFilter(ct)
	}))
	if err != nil {
		panic(err) // the options are constants
	}
	return wrap(next)
}
