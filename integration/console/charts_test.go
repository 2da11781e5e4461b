package console

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"broker/integration/harness"
)

// TestASpanOfAChartLeadsToItsJobs draws a span with the pointer. The chart shows the time under the pointer, and has a
// mark for the pause of the queue.
func TestASpanOfAChartLeadsToItsJobs(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	shell(t, broker, "broker pause emails")
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/queues/emails")
	var over struct{ X, Y, W, H float64 }
	harness.Eventually(t, func() string {
		b.eval(`(() => { const over = document.querySelector('.u-over'); if (!over) return {}; over.scrollIntoView({ block: 'center' });
			const r = over.getBoundingClientRect(); return { X: r.x, Y: r.y, W: r.width, H: r.height }; })()`, &over)
		if over.W < 50 {
			b.run(chromedp.Reload())
			return "there is no chart"
		}
		return ""
	})
	if data := b.attribute(".chart", "data-chart"); !strings.Contains(data, "paused emails") ||
		!strings.Contains(data, "broker started") {
		t.Errorf("the chart has no marks: %s", data)
	}
	y := over.Y + over.H/2
	b.run(chromedp.MouseEvent(input.MouseMoved, over.X+over.W*0.2, y))
	b.wants("UTC")
	b.run(chromedp.MouseEvent(input.MousePressed, over.X+over.W*0.2, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(input.MouseMoved, over.X+over.W*0.5, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(input.MouseMoved, over.X+over.W*0.95, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(input.MouseReleased, over.X+over.W*0.95, y, chromedp.ButtonLeft))
	b.wants("created from")
	var at string
	b.run(chromedp.Location(&at))
	if !strings.Contains(at, "/jobs?queue=emails&created_from=") || !strings.Contains(at, "&created_to=") {
		t.Errorf("a span leads to %s", at)
	}
	b.clean("a chart")
}

// attribute is an attribute of the first element that matches.
func (b *browser) attribute(what, name string) (value string) {
	b.t.Helper()
	b.eval(`document.querySelector('`+what+`').getAttribute('`+name+`')`, &value)
	return value
}
