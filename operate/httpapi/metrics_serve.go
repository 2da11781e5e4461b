package httpapi

import (
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// serveMetrics serves the metrics in the format that the client asks for.
func (s *Server) serveMetrics() http.Handler {
	return promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
}

// Registerer accepts more metrics, such as those of libraries.
func (s *Server) Registerer() prometheus.Registerer { return s.metrics.registry }

// WriteMetrics writes the metrics as text.
func (s *Server) WriteMetrics(w io.Writer) error {
	families, err := s.metrics.registry.Gather()
	if err != nil {
		return err
	}
	encoder := expfmt.NewEncoder(w, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return err
		}
	}
	return nil
}
