package packages_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"broker/integration/harness"
)

const monitoring = "packaging/monitoring"

func TestAlertRules(t *testing.T) {
	t.Parallel()
	harness.Need(t, "promtool")
	run(t, "promtool", "check", "rules", monitoring+"/broker.rules.yaml")
	run(t, "promtool", "test", "rules", monitoring+"/broker.rules.test.yaml")
}

func TestEveryAlertHasARunbookAndATest(t *testing.T) {
	t.Parallel()
	rules, tests, page := read(t,
		monitoring+"/broker.rules.yaml"), read(t, monitoring+"/broker.rules.test.yaml"), read(t, "docs/watching.md")
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	if len(alerts) == 0 {
		t.Fatal("no alerts")
	}
	for _, a := range alerts {
		name := a[1]
		if !strings.Contains(page, "\n### "+name+"\n\n") {
			t.Errorf("docs/watching.md has no paragraph for %s", name)
		}
		if !strings.Contains(rules, "runbook: docs/watching.md#"+strings.ToLower(name)+"\n") {
			t.Errorf("%s does not name its paragraph", name)
		}
		if !strings.Contains(tests, "exp_labels: {") || !strings.Contains(tests, "- name: "+name+"\n") {
			t.Errorf("%s has no test", name)
		}
	}
}

// TestMonitoringUsesMetricsThatExist compares the names in rules, dashboard and KEDA example with those of a broker
// that has had jobs, and with the cluster's metrics as documented.
func TestMonitoringUsesMetricsThatExist(t *testing.T) {
	t.Parallel()
	harness.Need(t, "gearman")
	b := harness.Start(t, harness.Options{Config: archived(t)})
	host, port, _ := strings.Cut(b.Gearman, ":")
	run(t, "gearman", "-h", host, "-p", port, "-f", "q", "-b", "payload")
	run(t, "gearman", "-h", host, "-p", port, "-f", "q", "-w", "-c", "1", "--", "cat")
	var metrics string
	harness.Eventually(t, func() string { // a Gearman worker does not wait until its completion is accepted
		_, text, err := b.Get("/metrics")
		if err != nil {
			t.Fatal(err)
		}
		if metrics = text; !strings.Contains(metrics, "# TYPE broker_run_seconds ") {
			return "the job has not ended"
		}
		return ""
	})
	known := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\w+) (\w+)`).FindAllStringSubmatch(metrics, -1) {
		known[m[1]] = true
		if m[2] == "histogram" {
			known[m[1]+"_bucket"], known[m[1]+"_sum"], known[m[1]+"_count"] = true, true, true
		}
	}
	for _, name := range regexp.MustCompile("`(broker_cluster_\\w+)`").FindAllStringSubmatch(read(t, "docs/metrics.md"),
		-1) {
		known[name[1]] = true
	}
	for _, file := range []string{
		"broker.rules.yaml", "broker.rules.test.yaml", "grafana-dashboard.json", "keda-scaledobject.yaml",
	} {
		names := regexp.MustCompile(`\b(broker|process)_\w+`).FindAllString(read(t, filepath.Join(monitoring, file)),
			-1)
		if len(names) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s: no metric %s", file, name)
			}
		}
	}
}

func TestDashboardIsComplete(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Title, UID string
		Panels     []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, monitoring+"/grafana-dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.Title == "" || dashboard.UID == "" || len(dashboard.Panels) == 0 {
		t.Fatalf("dashboard %q %q with %d panels", dashboard.Title, dashboard.UID, len(dashboard.Panels))
	}
	taken := make(map[[2]int]string) // by the cells of the grid
	ids := make(map[int]bool)
	for _, p := range dashboard.Panels {
		if p.Title == "" || len(p.Targets) == 0 || p.Targets[0].Expr == "" || ids[p.ID] {
			t.Errorf("panel %d %q: no title, no query, or its number is not unique", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				cell := [2]int{x, y}
				if other := taken[cell]; other != "" || x >= 24 {
					t.Fatalf("panel %q overlaps %q or the edge", p.Title, other)
				}
				taken[cell] = p.Title
			}
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(projectRoot(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
