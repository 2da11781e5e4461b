package console

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"broker/integration/harness"
)

// TestDocumentationCanBeSearched searches the documentation in a browser and follows the first hit. The browser reports
// violations of the content security policy and requests to other hosts.
func TestDocumentationCanBeSearched(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	broker := harness.Start(t, harness.Options{})
	b := openBrowser(t, "http://"+broker.HTTP)
	var hit, title string
	b.run(
		chromedp.Navigate(b.base+"/docs/"),
		chromedp.SendKeys("#search", "backup restore", chromedp.ByQuery),
		chromedp.WaitVisible("#found a", chromedp.ByQuery),
		chromedp.Text("#found a", &hit, chromedp.ByQuery),
		chromedp.Click("#found a", chromedp.ByQuery),
		chromedp.WaitVisible(`nav a[aria-current][href="operating.html"]`, chromedp.ByQuery),
		chromedp.Title(&title),
	)
	if !strings.HasPrefix(hit, "Operating: Backup and restore") || !strings.HasPrefix(title, "Operating") {
		t.Errorf("the first hit is %q, its page %q", hit, title)
	}
	b.clean("documentation")
}
