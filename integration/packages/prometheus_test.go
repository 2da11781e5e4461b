package packages_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
	"broker/integration/server"
)

// TestEveryQueryHasData lets a Prometheus scrape a broker that has traffic, and evaluates every query of the dashboard,
// the alerts, the KEDA example and the documentation. Each returns a number with the labels that its legend shows. A
// misspelt name, label or join returns nothing, which no check of the syntax finds. The broker is a cluster of one
// node: it has the cluster's metrics too.
func TestEveryQueryHasData(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	harness.Need(t, "prometheus")
	node, err := server.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	b := harness.Start(t,
		harness.Options{Args: []string{"--node", "n1", "--cluster", "n1=" + node}, Config: archived(t)})
	p := startPrometheus(t, b.HTTP)
	worker, err := harness.OpenFaktory(b, harness.Patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = worker.Close() }) // the broker may be gone
	pending := queriesOf(t, b.HTTP)
	harness.Eventually(t, func() string {
		alerts, wrong := p.alerts()
		pending = append(pending, alerts...)
		return wrong
	})
	harness.Eventually(t, func() string {
		makeTraffic(t, worker)
		pending = slices.DeleteFunc(pending, func(q query) bool { return p.evaluate(t, q) == "" })
		var wrong []string
		for _, q := range pending {
			wrong = append(wrong, fmt.Sprintf("%s: %s: %s", q.source, q.expr, p.evaluate(t, q)))
		}
		return strings.Join(wrong, "\n")
	})
}

// archived is the settings of a broker with an archive, so that it has the metrics of one.
func archived(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("[archive]\ndir = %q\n", t.TempDir())
}

// query is a PromQL expression of ours.
type query struct {
	source string // where it stands
	expr   string // the variables are replaced
	legend string // Grafana's template of a legend, such as {{queue}}
}

// queriesOf collects all queries but those of the alerts.
func queriesOf(t *testing.T, instance string) (queries []query) {
	t.Helper()
	add := func(source, expr, legend string) { queries = append(queries, query{source, expr, legend}) }
	variables := strings.NewReplacer("$__rate_interval", "1m", "$instance", instance, "$queue", "mail|other")
	var dashboard struct {
		Templating struct {
			List []struct {
				Name  string
				Query json.RawMessage
			}
		}
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, monitoring+"/grafana-dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			add("panel "+panel.Title, variables.Replace(target.Expr), target.LegendFormat)
		}
	}
	for _, variable := range dashboard.Templating.List {
		if m := regexp.MustCompile(`label_values\((.*), (\w+)\)`).FindStringSubmatch(string(variable.Query)); m != nil {
			metric := strings.ReplaceAll(variables.Replace(m[1]), `\"`, `"`)
			add("variable "+variable.Name, "count by ("+m[2]+") ("+metric+")", "{{"+m[2]+"}}")
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^ +query: (.*)$`).FindAllStringSubmatch(read(t,
		monitoring+"/keda-scaledobject.yaml"), -1) {
		add("keda-scaledobject.yaml", m[1], "")
	}
	for _, block := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(read(t,
		"docs/metrics.md"), -1) {
		for line := range strings.Lines(block[1]) {
			expr, _, _ := strings.Cut(line, "#")
			add("docs/metrics.md", unfiltered(strings.TrimSpace(expr)), "")
		}
	}
	return queries
}

// unfiltered changes the comparisons of a query so that they return 0 for series which they would drop: an alert that
// does not fire has a result then.
func unfiltered(expr string) string {
	return regexp.MustCompile(` (==|!=|>=|<=|>|<) `).ReplaceAllString(expr, " $1 bool ")
}

// makeTraffic completes a job, fails a job, and leaves a job ready.
func makeTraffic(t *testing.T, worker *faktory.Client) {
	t.Helper()
	for range 3 {
		job := faktory.NewJob("Send", 1)
		job.Queue = "mail"
		if err := worker.Push(job); err != nil {
			t.Fatal(err)
		}
	}
	for _, finish := range []func(jid string) error{
		worker.Ack,
		func(jid string) error { return worker.Fail(jid, errors.New("refused"), nil) },
	} {
		job, err := worker.Fetch("mail")
		if err == nil && job == nil {
			err = errors.New("no job")
		}
		if err == nil {
			err = finish(job.Jid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// prometheus is a Prometheus server.
type prometheus struct{ address string }

// startPrometheus starts a Prometheus that scrapes an address each second and evaluates the alert rules.
func startPrometheus(t *testing.T, target string) prometheus {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yaml")
	text := fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - {job_name: broker, static_configs: [{targets: [%q]}]}
`, filepath.Join(projectRoot(t), monitoring, "broker.rules.yaml"), target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := server.StartPrometheus(dir, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return prometheus{p.Addr}
}

// alerts returns the alerts' expressions as Prometheus has parsed them, or what is wrong with a rule.
func (p prometheus) alerts() (queries []query, wrong string) {
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Query, Health, LastError string }
			}
		}
	}
	if err := p.get("/api/v1/rules", &answer); err != nil {
		return nil, err.Error()
	}
	if len(answer.Data.Groups) == 0 {
		return nil, "no rules"
	}
	for _, group := range answer.Data.Groups {
		for _, rule := range group.Rules {
			if rule.Health != "ok" {
				return nil, fmt.Sprintf("rule %s: %s %s", rule.Name, rule.Health, rule.LastError)
			}
			queries = append(queries, query{source: "alert " + rule.Name, expr: unfiltered(rule.Query)})
		}
	}
	return queries, ""
}

// evaluate asks for the present value of a query. It returns what is wrong with the answer: nothing if a series has a
// number and all series have the labels of the legend.
func (p prometheus) evaluate(t *testing.T, q query) string {
	t.Helper()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := p.get("/api/v1/query?query="+url.QueryEscape(q.expr), &answer); err != nil {
		return err.Error()
	}
	if answer.Error != "" {
		t.Fatalf("%s: %s: %s", q.source, q.expr, answer.Error)
	}
	wrong := "no series"
	for _, series := range answer.Data.Result {
		for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(q.legend, -1) {
			if _, ok := series.Metric[label[1]]; !ok {
				return fmt.Sprintf("the series %v have no label %s", series.Metric, label[1])
			}
		}
		text, _ := series.Value[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
			return ""
		}
		wrong = "value " + text
	}
	return wrong
}

// get reads an answer of Prometheus' API, also one that reports an error.
func (p prometheus) get(path string, answer any) error {
	resp, err := http.Get("http://" + p.address + path)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("%s: %s: %w", resp.Status, body, err)
	}
	return nil
}
