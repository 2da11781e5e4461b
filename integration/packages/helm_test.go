package packages_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	chart       = "packaging/helm/broker"
	kubeVersion = "1.34.0" // of the types in packaging/helm/schemas
)

// charts are the values that the tests make the chart with.
var charts = []struct {
	name   string
	values []string
	kinds  string // of the objects, in order
}{
	{"single", []string{"password=p"}, "ConfigMap Secret Service Service StatefulSet"},
	{
		"existing secret",
		[]string{"existingSecret=s", "storage.className=fast"},
		"ConfigMap Service Service StatefulSet",
	},
	{
		"cluster",
		[]string{
			"password=p", "cluster.enabled=true", "cluster.tlsSecret=tls", "serviceMonitor.enabled=true",
			"serviceMonitor.labels.a=b",
		},
		"ConfigMap PodDisruptionBudget Secret Service Service ServiceMonitor StatefulSet",
	},
	{
		"everything else", []string{
			"password=p", "podDisruptionBudget.enabled=true", "imagePullSecrets[0].name=x",
			"env[0].name=BROKER_LOG_LEVEL", "env[0].value=debug",
			"podAnnotations.a=b", "nodeSelector.a=b", "tolerations[0].operator=Exists",
			"affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key=a",
			"affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator=Exists",
			"service.type=LoadBalancer", "service.annotations.a=b", "archive.claim=jobs-archive", "protocols.sqs=true",
			"protocols.beanstalk=true",
		}, "ConfigMap PodDisruptionBudget Secret Service Service StatefulSet",
	},
}

// tool is one of the programs that make tools installs.
func tool(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(projectRoot(t), "bin", "tools", name)
}

func withValues(argv, values []string) []string {
	for _, v := range values {
		argv = append(argv, "--set", v)
	}
	return argv
}

// render is the chart with values.
func render(t *testing.T, values []string) string {
	t.Helper()
	return run(t, withValues([]string{
		tool(t, "helm"), "template", "jobs", chart, "--namespace", "work", "--kube-version", kubeVersion,
	}, values)...)
}

func TestChartIsValid(t *testing.T) {
	t.Parallel()
	schemas := t.TempDir()
	run(t, "go", "run", "-C", "packaging/helm/schemas", ".", schemas)
	validate := func(manifest string) (string, error) {
		cmd := exec.Command(tool(t, "kubeconform"), "-strict", "-verbose", "-schema-location",
			schemas+"/{{.ResourceKind}}.json")
		cmd.Stdin = strings.NewReader(manifest)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, c := range charts {
		run(t, withValues([]string{tool(t, "helm"), "lint", "--strict", chart}, c.values)...)
		manifest := render(t, c.values)
		if out, err := validate(manifest); err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, out)
		}
		var kinds []string
		for _, m := range regexp.MustCompile(`(?m)^kind: (\w+)`).FindAllStringSubmatch(manifest, -1) {
			kinds = append(kinds, m[1])
		}
		if got := strings.Join(sorted(kinds), " "); got != c.kinds {
			t.Errorf("%s: objects %s, want %s", c.name, got, c.kinds)
		}
		for _, wrong := range [][2]string{
			{"replicas:", "replica:"}, {"port: 4730", "port: gearman"}, {"  serviceName: jobs-nodes\n", ""},
		} {
			if out, err := validate(strings.Replace(manifest, wrong[0], wrong[1], 1)); err == nil {
				t.Errorf("%s: %q in place of %q is not noticed:\n%s", c.name, wrong[1], wrong[0], out)
			}
		}
	}
}

func TestChartRefusesInvalidValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ values, want string }{
		{"replicas=1", "set password, or existingSecret"},
		{"password=p,cluster.enabled=true", "nodes need certificates"},
		{"password=p,cluster.enabled=true,cluster.tlsSecret=tls,cluster.nodes=2", "must be odd"},
		{"password=p,protocols.redis=true", "protocols.redis is not one of beanstalk, conveyor, qless, sqs"},
	} {
		cmd := exec.Command(tool(t, "helm"), "template", "jobs", chart, "--kube-version", kubeVersion, "--set",
			c.values)
		cmd.Dir = projectRoot(t)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, want %q\n%s", c.values, err, c.want, out)
		}
	}
}

// TestChartConfiguresTheBroker compares the environment of the container with the settings that exist.
func TestChartConfiguresTheBroker(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `(?:([a-z, ]+): )?([a-z_.]+)`").FindAllStringSubmatch(read(t,
		"docs/settings.md"), -1) {
		for section := range strings.SplitSeq(m[1], ", ") {
			name := strings.TrimPrefix(section+"_"+m[2], "_")
			known["BROKER_"+strings.ToUpper(strings.ReplaceAll(name, ".", "_"))] = true
		}
	}
	manifest := render(t, charts[2].values)
	with := render(t, charts[3].values)
	for _, want := range []string{
		`{name: BROKER_SQS_LISTEN, value: "0.0.0.0:9324"}`, `{name: sqs, containerPort: 9324}`,
		`{name: sqs, port: 9324, targetPort: sqs}`,
		`{name: BROKER_BEANSTALK_LISTEN, value: "0.0.0.0:11300"}`,
		`{name: BROKER_ARCHIVE_DIR, value: /var/lib/broker-archive}`,
		`{name: archive, mountPath: /var/lib/broker-archive}`, `persistentVolumeClaim: {claimName: jobs-archive}`,
	} {
		if !strings.Contains(with, want) || strings.Contains(manifest, want) {
			t.Errorf("%s is in the chart when it is not asked for, or the reverse:\n%s", want, with)
		}
	}
	names := regexp.MustCompile(`name: (BROKER_\w+)`).FindAllStringSubmatch(manifest+with, -1)
	if len(names) < 9 {
		t.Fatalf("the container has %d settings", len(names))
	}
	for _, m := range names {
		if !known[m[1]] {
			t.Errorf("%s is not a setting", m[1])
		}
	}
	members := `BROKER_CLUSTER_MEMBERS, value: "jobs-0=jobs-0.jobs-nodes.work.svc:7431,jobs-1=jobs-1.jobs-nodes.work.svc:7431,jobs-2=jobs-2.jobs-nodes.work.svc:7431"`
	if !strings.Contains(manifest, members) {
		t.Errorf("the cluster does not have the members %s:\n%s", members, manifest)
	}
	for _, probe := range []string{"startupProbe", "readinessProbe", "livenessProbe"} {
		if !strings.Contains(manifest, probe+":\n") {
			t.Errorf("no %s", probe)
		}
	}
}

func sorted(words []string) []string {
	slices.Sort(words)
	return words
}
