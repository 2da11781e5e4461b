package httpapi

import (
	"io"
	"net/http"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// metricsFormat is Prometheus' text format. Some clients like protobuf better, and take text as well; the program contains no library
// for protobuf, since it would be 1.3 MB larger.
var metricsFormat = expfmt.NewFormat(expfmt.TypeTextPlain)

// serveMetrics serves the metrics, and only those that name[] lists, if any. Prometheus' own handler would add 0.2 MB to the program,
// most of it for wrappers that we do not use.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	families, err := s.metrics.registry.Gather()
	if err != nil {
		http.Error(w, "gather the metrics: "+err.Error(), http.StatusInternalServerError)
		return
	}
	if names := r.URL.Query()["name[]"]; len(names) > 0 {
		families = slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return !slices.Contains(names, f.GetName()) })
	}
	w.Header().Set("Content-Type", string(metricsFormat))
	_ = writeFamilies(w, families) // the client has left
}

// WriteMetrics writes the metrics as text.
func (s *Server) WriteMetrics(w io.Writer) error {
	families, err := s.metrics.registry.Gather()
	if err != nil {
		return err
	}
	return writeFamilies(w, families)
}

func writeFamilies(w io.Writer, families []*dto.MetricFamily) error {
	encoder := expfmt.NewEncoder(w, metricsFormat)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return err
		}
	}
	return nil
}
