package httpapi

import (
	"io"
	"net/http"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// serveMetrics serves the metrics as Prometheus' own handler does: in the format that the client prefers, and only those that
// name[] lists, if any. That handler's package would add 0.2 MB to the program, most of it for wrappers that we do not use.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	families, err := s.metrics.registry.Gather()
	if err != nil {
		http.Error(w, "gather the metrics: "+err.Error(), http.StatusInternalServerError)
		return
	}
	if names := r.URL.Query()["name[]"]; len(names) > 0 {
		families = slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return !slices.Contains(names, f.GetName()) })
	}
	format := expfmt.Negotiate(r.Header)
	w.Header().Set("Content-Type", string(format))
	_ = writeFamilies(w, format, families) // the client has left
}

// WriteMetrics writes the metrics as text.
func (s *Server) WriteMetrics(w io.Writer) error {
	families, err := s.metrics.registry.Gather()
	if err != nil {
		return err
	}
	return writeFamilies(w, expfmt.NewFormat(expfmt.TypeTextPlain), families)
}

func writeFamilies(w io.Writer, format expfmt.Format, families []*dto.MetricFamily) error {
	encoder := expfmt.NewEncoder(w, format)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return err
		}
	}
	return nil
}
