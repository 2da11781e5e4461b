package console

import (
	"fmt"
	"strings"
	"testing"

	"broker/integration/harness"
)

// TestLogOfAJobIsShownLive appends lines while the page of a job is open: it shows the end of the log, unless somebody
// reads above.
func TestLogOfAJobIsShownLive(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	id := strings.TrimSpace(shell(t, broker, `broker push rows '[1]' --type Import`))
	lease := api(t, broker, "POST", "/queues/rows/lease", `{"worker":"loader"}`)
	line := 0
	write := func(n int) {
		lines := make([]string, n)
		for i := range lines {
			line++
			lines[i] = fmt.Sprintf(`"row <%d>"`, line)
		}
		api(t, broker, "POST", fmt.Sprintf("/leases/%s/log", lease["lease"]),
			`{"lines":[`+strings.Join(lines, ",")+`]}`)
	}
	b := openBrowser(t, "http://"+broker.HTTP)
	b.live()
	b.open("/jobs/" + id)
	b.wants("Import")
	write(100)
	b.wants("row <100>")
	const away = `(() => { const l = document.getElementById('log-lines'); return l.scrollHeight - l.scrollTop - l.clientHeight; })()`
	atEnd := func() string {
		var left float64
		if b.eval(away, &left); left > 8 {
			return fmt.Sprintf("%v pixels are below", left)
		}
		return ""
	}
	harness.Eventually(t, atEnd)
	write(50)
	b.wants("row <150>")
	harness.Eventually(t, atEnd)
	var top float64
	b.eval(`document.getElementById('log-lines').scrollTop = 40`, &top)
	write(50)
	b.wants("row <200>")
	if b.eval(`document.getElementById('log-lines').scrollTop`, &top); top != 40 {
		t.Errorf("the reader is at %v", top)
	}
	b.clean("the log of a job")
}
