package console

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"broker/integration/harness"
)

// TestQueuesAreChangedInPlace sets limits and turns of several queues from their list, and clears them.
func TestQueuesAreChangedInPlace(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	selectBoth := func() {
		b.open("/queues")
		b.run(chromedp.Click(`input[value="emails"]`), chromedp.Click(`input[value="imports"]`),
			chromedp.WaitEnabled(`button[value="clear"]`))
	}
	selectBoth()
	b.run(chromedp.Click("#limits summary"), chromedp.SendKeys(`#limits input[name="concurrency"]`, "3"),
		chromedp.SendKeys(`#limits input[name="low"]`, "500\r"))
	b.wants("Limits of 2 queues set.")
	selectBoth()
	b.run(chromedp.Click("#sharing summary"), chromedp.SetValue(`#sharing select`, "tag"),
		chromedp.SendKeys(`#sharing input[name="tag"]`, "tenant"),
		chromedp.SendKeys(`#sharing textarea`, "acme = 3"), chromedp.Click(`button[value="share"]`))
	b.wants("Turns of the keys of 2 queues set.")
	for _, queue := range []string{"emails", "imports"} {
		q := api(t, broker, "GET", "/queues/"+queue, "")
		if throttle, ok := q["throttle"].(map[string]any); !ok || throttle["concurrency"] != 3.0 {
			t.Errorf("queue %s has %v", queue, q["throttle"])
		}
		if most, ok := q["max"].(map[string]any); !ok || most["low"] != 500.0 || most["high"] != 0.0 {
			t.Errorf("queue %s has %v", queue, q["max"])
		}
		sharing, ok := q["sharing"].(map[string]any)
		if !ok || sharing["key_tag"] != "tenant" || sharing["fair"] != true ||
			sharing["weights"].(map[string]any)["acme"] != 3.0 {
			t.Errorf("queue %s has %v", queue, q["sharing"])
		}
	}
	b.open("/queues/emails")
	b.run(chromedp.Click("#sharing summary"), chromedp.SetValue(`#sharing textarea`, "acme"),
		chromedp.Click(`#sharing button`))
	b.refused("such as acme = 3")
	b.open("/queues/emails")
	b.run(chromedp.Click("#sharing summary"))
	b.eval(`document.querySelector('#sharing select').selectedIndex = 0`, nil)
	b.run(chromedp.Click(`#sharing button`))
	b.wants("The turns of its keys are set.")
	b.eval(`document.querySelector('input[name="concurrency"]').value = ''`, nil)
	b.run(chromedp.Click(`button[value="limit"]`))
	b.wants("The limits are set.")
	if q := api(t, broker, "GET", "/queues/emails", ""); q["throttle"] != nil || q["sharing"] != nil {
		t.Errorf("the queue keeps %v, %v", q["throttle"], q["sharing"])
	}
	selectBoth()
	b.run(focus(`input[value="emails"]`), chromedp.KeyEvent("\r"))
	if strings.Contains(shell(t, broker, "broker queues"), "paused") {
		t.Fatal("Enter on a box has paused a queue: ", shell(t, broker, "broker queues; broker audit"))
	}
	b.run(chromedp.Click(`button[value="clear"]`))
	b.wants("Delete 8 jobs?")
	b.run(chromedp.Click("main form button.danger"))
	b.wants("Delete 8 jobs in ")
	b.clean("changes in place")
}

// TestLimitsShowTheHoldersOfSlotsAndKeys reads who holds the slots of a limit and the unique keys, by pages.
func TestLimitsShowTheHoldersOfSlotsAndKeys(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	shell(t, broker,
		`for i in $(seq 25); do broker push orders "$i" --unique "order:$i" --type Charge > /dev/null; done`)
	api(t, broker, "PUT", "/limits", `{"queue":"orders","scope":"queue","concurrency":2}`)
	held := []string{}
	for range 2 {
		lease := api(t, broker, "POST", "/queues/orders/lease", `{"worker":"till-1"}`)
		job := lease["job"].(map[string]any)
		held = append(held, job["id"].(string))
	}
	shell(t, broker,
		`for i in $(seq 100 160); do curl -sf -X PUT -H 'Content-Type: application/json' -d "{\"queue\":\"q$i\",\"concurrency\":1}" "$BROKER_URL/api/v1/limits" > /dev/null; done`)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/limits")
	b.wants("23 wait")
	b.wants("25 held")
	b.wants("order:25")
	b.run(chromedp.Click(`//td[@data-label="Held by"]//a`))
	b.wants(held[0])
	b.open("/limits")
	b.run(chromedp.Click("#keys .foot a"))
	b.wants("order:1")
	b.wants("till-1")
	b.open("/limits")
	b.run(chromedp.Click(`//a[text()="Next page"]`))
	b.wants("q160")
	b.run(chromedp.Click(`td.acts button[value="remove"]`))
	b.confirms("Remove a limit of ")
	b.wants("The limit is removed.")
	b.clean("holders")
}
