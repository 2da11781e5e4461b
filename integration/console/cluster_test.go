package console

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"broker/integration/harness"
	"broker/integration/server"
)

// startCluster starts three nodes and waits until each of them serves.
func startCluster(t *testing.T) (nodes []*server.BrokerServer) {
	t.Helper()
	harness.BrokerOnly(t)
	var members []string
	for i := range 3 {
		address, err := server.FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, fmt.Sprintf("n%d=%s", i+1, address))
	}
	folder := t.TempDir()
	for i := range members {
		dir := filepath.Join(folder, fmt.Sprint("n", i+1))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		n, err := server.NewBroker(dir, server.BrokerOptions{
			Binary: harness.Binary(t),
			Args:   []string{"--node", fmt.Sprint("n", i+1), "--cluster", strings.Join(members, ",")},
			// a node that does not run for some seconds changes no leader
			Env: []string{"BROKER_CLUSTER_ELECTION_TIMEOUT=10s"},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			n.Process.Kill()
			if t.Failed() {
				t.Logf("log of %s:\n%s", filepath.Base(dir), n.Output())
			}
		})
		if err := n.Spawn(); err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		if err := n.WaitReady(harness.Patience); err != nil {
			t.Fatal(err)
		}
	}
	return nodes
}

// nodeRow is a row of the page of the cluster.
type nodeRow struct{ ID, Role, Lag, Button string }

// nodeRows reads the page once it shows what is wanted.
func (b *browser) nodeRows(wanted func([]nodeRow) bool) (rows []nodeRow) {
	b.t.Helper()
	harness.Eventually(b.t, func() string {
		b.open("/cluster")
		b.eval(`[...document.querySelectorAll('tbody tr:not(.empty)')].map((tr) => ({
			ID: tr.querySelector('.main').textContent, Role: tr.querySelector('[data-label="Role"]').textContent,
			Lag: tr.querySelector('[data-label="Lag"]').textContent, Button: tr.querySelector('.acts button')?.value || '' }))`, &rows)
		if len(rows) == 0 || !wanted(rows) {
			return fmt.Sprintf("the page shows %v", rows)
		}
		return ""
	})
	return rows
}

// oneLeads reports whether there are n nodes: a leader, which has no button, and followers without lag that may lead
// next.
func oneLeads(n int) func([]nodeRow) bool {
	return func(rows []nodeRow) bool {
		leaders, followers := 0, 0
		for _, r := range rows {
			switch {
			case r.Role == "leader" && r.Button == "":
				leaders++
			case r.Role == "follower" && r.Lag == "0" && r.Button == "transfer":
				followers++
			}
		}
		return leaders == 1 && followers == n-1
	}
}

// withRole is the first node that has a role.
func withRole(rows []nodeRow, role string) string {
	for _, r := range rows {
		if r.Role == role {
			return r.ID
		}
	}
	return ""
}

// TestClusterIsShownAndChanged hands the lead over, and removes and adds a node, through the pages of a node that
// follows.
func TestClusterIsShownAndChanged(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	b := openBrowser(t, "http://"+nodes[0].HTTP)
	rows := b.nodeRows(oneLeads(3))
	b.wants("1 node may fail, and clients are still served.")
	next := withRole(rows, "follower")
	b.run(chromedp.Click(fmt.Sprintf(`//tr[td/strong="%s"]//button`, next)))
	b.wants("Let " + next + " lead?")
	b.run(chromedp.Click("main form button.danger"))
	b.wants("Another node leads.")
	b.wants(next + " leads")
	b.clean("the page of the cluster")

	rows = b.nodeRows(oneLeads(3))
	gone := withRole(rows, "follower")
	if gone == "n1" { // the pages come through this node
		gone = withRole(rows[1:], "follower")
	}
	var address string
	b.nodeRows(oneLeads(3))
	b.run(chromedp.Text(fmt.Sprintf(`//tr[td/strong="%s"]//td[@data-label="Address"]`, gone), &address),
		chromedp.Click("#edit summary"), chromedp.SendKeys(`form:has(button[value="remove"]) input[name="node"]`, gone),
		chromedp.Click(`button[value="remove"]`))
	b.wants("Remove the node " + gone + "?")
	b.run(chromedp.Click("main form button.danger"))
	b.wants("The node is removed.")
	b.nodeRows(oneLeads(2))
	b.wants("If one more node fails, nothing is accepted any more.")

	b.run(chromedp.Click("#edit summary"), chromedp.SendKeys(`form:has(button[value="add"]) input[name="node"]`, "n4"),
		chromedp.SendKeys(`input[name="address"]`, address), chromedp.Click(`button[value="add"]`))
	b.wants("The node may join.")
	b.clean("changes of the cluster")

	b.open("/audit")
	for _, action := range []string{"cluster.transfer", "cluster.remove", "cluster.add"} {
		b.wants(action)
	}
}

// TestClusterThatLacksNodesSaysSo kills one node after the other: the overview counts them, and without a majority an
// open page turns red, and the node that is left shows the cluster. Once the others are back, the overview says so.
func TestClusterThatLacksNodesSaysSo(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	b := openBrowser(t, "http://"+nodes[0].HTTP)
	overviewHas := func(text string) {
		t.Helper()
		harness.Eventually(t, func() string {
			b.open("/")
			return b.lacks(text)
		})
	}
	overviewHas("3 of 3 nodes")
	nodes[1].Process.Kill()
	overviewHas("2 of 3 nodes; one more failure stops it")
	b.run(chromedp.WaitVisible("header.head .state"))
	nodes[2].Process.Kill()
	b.run(chromedp.WaitVisible("#offline.shown"))
	harness.Eventually(t, func() string {
		b.open("/cluster")
		return b.lacks("No node serves clients now.")
	})
	b.wants("Too few nodes are reachable")
	for _, n := range nodes[1:] {
		if err := n.Spawn(); err != nil {
			t.Fatal(err)
		}
	}
	overviewHas("3 of 3 nodes")
}
