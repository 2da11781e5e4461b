package console

import (
	"testing"

	"github.com/chromedp/chromedp"

	"broker/integration/harness"
)

// TestFaktoryWorkersAreQuietedAndTerminated runs a worker on the official library, which learns what to do with its
// next heartbeat.
func TestFaktoryWorkersAreQuietedAndTerminated(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	worker := harness.Spawn(t, harness.Command{
		Argv: []string{harness.Program(t, "integration/clients/goworker"), "mail=echo"},
		Env:  []string{"FAKTORY_URL=" + broker.FaktoryURL()},
	})
	b := openBrowser(t, "http://"+broker.HTTP)
	b.live()
	b.open("/workers?protocol=faktory")
	b.run(chromedp.WaitVisible(`td.acts button[value="quiet"]`), chromedp.WaitVisible(`//td//a[text()="mail"]`))
	b.run(chromedp.Click(`td.acts button[value="quiet"]`))
	b.wants("1 worker will be told to take no more jobs with the next heartbeat.")
	b.open("/workers?protocol=faktory")
	b.run(chromedp.WaitVisible(".state-quiet"))
	b.run(chromedp.Click(`td.acts button[value="terminate"]`))
	b.confirms("Terminate ")
	b.wants("1 worker will be told to exit with the next heartbeat.")
	if code, err := worker.Wait(harness.Patience); err != nil || code != 0 {
		t.Errorf("the worker ended with %d, %v", code, err)
	}
	b.open("/workers?protocol=faktory")
	b.wants("Nobody is connected over Faktory.")
	b.clean("workers")
}
