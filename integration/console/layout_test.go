package console

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// widths are those of a screen, a tablet and a phone.
var widths = []int64{1440, 768, 390}

// coveredCells are the rows below the bar of actions, and the cells below the actions of their row.
const coveredCells = `(() => {
	const within = (e) => { const r = document.createRange(); r.selectNodeContents(e); return r.getBoundingClientRect(); };
	const meet = (a, b) => a.width && b.width && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
	const bar = document.querySelector('.bar.bulk')?.getBoundingClientRect();
	const below = bar ? [...document.querySelectorAll('.bar.bulk ~ .scroll tbody tr')].filter((r) => meet(bar, r.getBoundingClientRect())) : [];
	const under = [...document.querySelectorAll('main td.acts')].flatMap((a) => [...a.parentElement.cells].filter((c) => c !== a && meet(within(a), within(c))));
	return [...below, ...under].map((e) => e.innerText.slice(0, 30));
})()`

// TestSheetsFitOnTheScreen opens every sheet of the lists at three widths. With SHOTS, a folder, it leaves pictures
// there. Nothing covers rows or cells.
func TestSheetsFitOnTheScreen(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	shell(t, broker,
		`broker schedules add often beat x --cron '0 3 1 1 *' && for i in $(seq 20); do broker schedules run often; done`)
	shell(t, broker,
		`broker push a-very-long-queue-name-that-was-made-of-the-path-of-a-class.Com.Example.Backend.Jobs.Nightly x --type Com.Example.Backend.Jobs.Nightly.ReconcileLedgers`)
	b := openBrowser(t, "http://"+broker.HTTP)
	shot := func(name string) {
		dir := os.Getenv("SHOTS")
		if dir == "" {
			return
		}
		var picture []byte
		b.run(chromedp.FullScreenshot(&picture, 100))
		if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, width := range widths {
		b.run(emulation.SetDeviceMetricsOverride(width, 960, 1, width < 500))
		for _, page := range []string{
			"jobs", "dead", "queues", "retrying", "workers", "schedules", "schedules/often", "queues/emails", "submit",
			"nosuch", "",
		} {
			b.open("/" + page)
			name := fmt.Sprintf("%s-%d", strings.ReplaceAll(page, "/", "-"), width)
			shot(name)
			var wide bool
			b.eval(fmt.Sprintf(`document.documentElement.scrollWidth > %d`, width),
				&wide) // the window of a phone grows with its page
			if wide {
				t.Errorf("/%s is wider than %d", page, width)
			}
			var off []string
			b.eval(`[...document.querySelectorAll('main details.drop')].flatMap((d) => {
				d.open = true;
				const s = d.querySelector('.sheet').getBoundingClientRect(), side = document.getElementById('nav').getBoundingClientRect();
				const fields = [...d.querySelectorAll('.fields :is(input, select, textarea)')].map((f) => f.getBoundingClientRect());
				const apart = fields.every((f, i) => f.right <= s.right && fields.every((g, k) => k <= i || f.right <= g.left || g.right <= f.left || f.bottom <= g.top || g.bottom <= f.top));
				d.open = false;
				const within = apart && s.width > 100 && s.left >= (side.height ? side.right : 0) && s.right <= innerWidth + 1;
				return within ? [] : [d.textContent.trim().slice(0, 20) + ' from ' + s.left + ' to ' + s.right];
			})`, &off)
			if len(off) > 0 {
				t.Errorf("/%s at %d: sheets leave the page: %v", page, width, off)
			}
			var covered []string
			b.eval(coveredCells, &covered)
			if len(covered) > 0 {
				t.Errorf("/%s at %d: covered by others: %v", page, width, covered)
			}
			if page == "jobs" {
				b.eval(`document.querySelector('details.more').open = true`, nil)
				shot(name + "-filters")
			}
		}
	}
	b.run(emulation.SetDeviceMetricsOverride(1440, 500, 1, false))
	b.open("/settings")
	var top float64
	b.eval(`(() => { scrollTo(0, 600); return document.getElementById('nav').getBoundingClientRect().top; })()`, &top)
	if top != 0 {
		t.Errorf("the side bar is at %v after the page was scrolled", top)
	}
	var unnamed []string
	b.open("/dead")
	b.eval(`(() => { const names = [...document.querySelectorAll('main td.acts :is(button, a)')].map((x) => x.getAttribute('aria-label') || x.textContent);
		return names.filter((n, i) => names.indexOf(n) !== i); })()`, &unnamed)
	if len(unnamed) > 0 {
		t.Errorf("several buttons have the names %v", unnamed)
	}
}

// TestAPathWithoutAPageIsAPage: browsers get a page that leads on, other clients a problem.
func TestAPathWithoutAPageIsAPage(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.run(chromedp.Navigate(b.base + "/nosuch"))
	b.refused("There is no such page")
	b.run(chromedp.Click(`//main//a[text()="Queues"]`))
	b.wants("emails")
	if got := shell(t, broker,
		`curl -s "$BROKER_URL/nosuch"; curl -s -H 'Accept: text/html' "$BROKER_URL/api/v1/nosuch"`); strings.Count(got,
		"route_not_found") != 2 {
		t.Errorf("other clients get %s", got)
	}
}
