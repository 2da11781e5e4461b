package process

import (
	"fmt"
	"io"
	"runtime"

	"broker/operate/service"
)

// supportParts are the files that the program adds to a support bundle: its version, metrics and the end of its log.
func (p *Process) supportParts() []service.SupportPart {
	return []service.SupportPart{
		{Name: "version.txt", Write: func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "broker %s %s %s/%s, %d processors\n", p.Version, runtime.Version(), runtime.GOOS,
				runtime.GOARCH, runtime.NumCPU())
			return err
		}},
		{Name: "metrics.txt", Write: p.api.WriteMetrics},
		{Name: "log.txt", Write: func(w io.Writer) error {
			_, err := recentLog.WriteTo(w)
			return err
		}},
	}
}
