package cli

import (
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

// BarUnit is the unit of a progress bar.
type BarUnit int

// The units of progress bars.
const (
	BarJobs BarUnit = iota
	BarBytes
	BarKeys
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, isFile := w.(*os.File)
	return isFile && isatty.IsTerminal(f.Fd())
}

// NewBar returns a progress bar on standard error. It shows nothing if that is not a terminal. A total of -1 is
// unknown.
func NewBar(cmd *cobra.Command, total int64, unit BarUnit) *progressbar.ProgressBar {
	if total == 0 {
		total = 1
	}
	options := []progressbar.Option{
		progressbar.OptionSetWriter(cmd.ErrOrStderr()),
		progressbar.OptionSetVisibility(IsTerminal(cmd.ErrOrStderr())),
		progressbar.OptionShowCount(),
		progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(100 * time.Millisecond),
	}
	switch unit {
	case BarJobs:
		options = append(options, progressbar.OptionSetItsString("jobs"), progressbar.OptionShowIts())
	case BarBytes:
		options = append(options, progressbar.OptionShowBytes(true))
	case BarKeys:
		options = append(options, progressbar.OptionSetItsString("keys"), progressbar.OptionShowIts())
	}
	return progressbar.NewOptions64(total, options...)
}
