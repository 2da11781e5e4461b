package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
)

// BarUnit is what a progress bar counts.
type BarUnit string

// The units of progress bars.
const (
	BarJobs  BarUnit = "jobs"
	BarBytes BarUnit = "MB"
	BarKeys  BarUnit = "keys"
)

const (
	barWidth    = 30
	barThrottle = 100 * time.Millisecond
)

// isTerminal reports whether people read what is written to w.
func isTerminal(w io.Writer) bool {
	f, isFile := w.(*os.File)
	return isFile && isatty.IsTerminal(f.Fd())
}

// Bar shows on one line of a terminal how far something has come. One goroutine may use it.
type Bar struct {
	w       io.Writer // nil: shows nothing
	total   int64     // negative: unknown
	unit    BarUnit
	started time.Time
	drawn   time.Time
}

// NewBar returns a progress bar on standard error, which shows nothing where that is not a terminal. A total of -1 is unknown.
func NewBar(cmd *cobra.Command, total int64, unit BarUnit) *Bar {
	b := &Bar{total: total, unit: unit, started: time.Now()}
	if w := cmd.ErrOrStderr(); isTerminal(w) {
		b.w = w
	}
	return b
}

// Total is what Set counts up to.
func (b *Bar) Total() int64 { return b.total }

// SetTotal changes what Set counts up to.
func (b *Bar) SetTotal(total int64) { b.total = total }

// Set shows that so much is done.
func (b *Bar) Set(done int64) {
	now := time.Now()
	if b.w == nil || now.Sub(b.drawn) < barThrottle {
		return
	}
	b.drawn = now
	_, _ = fmt.Fprint(b.w, "\r", b.line(done, now.Sub(b.started)), "\x1b[K") // only shows
}

// Finish removes the bar.
func (b *Bar) Finish() {
	if b.w != nil {
		_, _ = fmt.Fprint(b.w, "\r\x1b[K") // only shows
	}
}

// line is the bar after some time, with the time that is left at the same speed.
func (b *Bar) line(done int64, after time.Duration) string {
	count := b.count(done)
	if b.total < 0 {
		return fmt.Sprintf("%s %s, %.0f/s", count, b.unit, float64(done)/max(after.Seconds(), 0.001))
	}
	share := min(float64(done)/float64(max(b.total, 1)), 1)
	full := int(share * barWidth)
	line := fmt.Sprintf("%3.0f%% [%s%s] %s/%s %s", share*100, strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), count, b.count(b.total), b.unit)
	if share > 0 {
		line += ", " + time.Duration(float64(after)*(1-share)/share).Round(time.Second).String() + " left"
	}
	return line
}

func (b *Bar) count(n int64) string {
	if b.unit == BarBytes {
		return fmt.Sprintf("%.1f", float64(n)/1e6)
	}
	return fmt.Sprint(n)
}
