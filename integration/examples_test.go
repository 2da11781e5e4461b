package integration_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"broker/integration/harness"
	"broker/integration/server"
)

// example is a folder of examples: the commands of its producer and its worker, as its README.md has them.
type example struct {
	name             string
	needs            []string
	producer, worker []string // in the folder of the example
}

var examples = []example{
	{"php", []string{"php", "php-gearman"}, []string{"php", "producer.php"}, []string{"php", "worker.php"}},
	{"perl", []string{"perl", "perl-gearman"}, []string{"perl", "producer.pl"}, []string{"perl", "worker.pl"}},
	{"python", []string{"python3"}, []string{"python3", "producer.py"}, []string{"python3", "worker.py"}},
	{"go", nil, []string{"./producer"}, []string{"./worker"}},
	{"node", []string{"node", "npm"}, []string{"node", "producer.js"}, []string{"node", "worker.js"}},
	{"ruby", []string{"ruby"}, []string{"ruby", "producer.rb"}, []string{"ruby", "worker.rb"}},
	{"shell", []string{"curl", "gearman"}, []string{"./producer.sh"}, []string{"./worker.sh"}},
}

// exampleFolder is where the examples of a language are.
func exampleFolder(t *testing.T, name string) string {
	t.Helper()
	root, err := server.Root()
	check(t, err)
	return filepath.Join(root, "examples", name)
}

// exampleCommand is a command of an example against a broker.
func exampleCommand(t *testing.T, b *harness.Broker, e *example, argv ...string) harness.Command {
	t.Helper()
	folder, argv := exampleFolder(t, e.name), slices.Clone(argv)
	switch {
	case e.name == "go":
		argv[0] = harness.Program(t, "examples/go/"+filepath.Base(argv[0]))
	case strings.HasPrefix(argv[0], "./"):
		argv[0] = filepath.Join(folder, argv[0])
	default:
		argv[1] = filepath.Join(folder, argv[1])
	}
	return harness.Command{Argv: argv, Env: []string{
		"GEARMAN_SERVER=" + b.Gearman, "FAKTORY_URL=" + b.FaktoryURL(), "BROKER_URL=http://" + b.HTTP,
		"NODE_PATH=" + filepath.Join(filepath.Dir(harness.Script(t, "node")), "node", "node_modules"),
	}}
}

// TestExamples starts the worker of each example and lets the producers of all examples submit jobs to it.
func TestExamples(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for i := range examples {
		e := &examples[i]
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			harness.Need(t, e.needs...)
			if e.name == "node" {
				harness.NeedNode(t)
			}
			b := harness.Start(t, harness.Options{})
			command := exampleCommand(t, b, e, e.worker...)
			command.Argv = append([]string{"sh", "-c", `exec "$0" "$@" 2>&1`}, command.Argv...)
			worker := harness.Spawn(t, command)
			for j := range examples {
				p := &examples[j]
				harness.Need(t, p.needs...)
				if p.name == "node" {
					harness.NeedNode(t)
				}
				name := e.name + "-from-" + p.name
				printed := harness.Run(t, exampleCommand(t, b, p, append(p.producer[:len(p.producer):len(p.producer)], name)...))
				if printed == "" {
					t.Errorf("the producer of %s prints nothing", p.name)
				}
				worker.AwaitLines(1, func(line string) bool { return line == "Hello, "+name })
			}
		})
	}
}

// TestExampleWorkersOutliveARestartOfTheBroker restarts the broker below each worker, and submits a job afterwards.
func TestExampleWorkersOutliveARestartOfTheBroker(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for i := range examples {
		e := &examples[i]
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			harness.Need(t, append([]string{"curl"}, e.needs...)...)
			if e.name == "node" {
				harness.NeedNode(t)
			}
			b := harness.Start(t, harness.Options{})
			command := exampleCommand(t, b, e, e.worker...)
			command.Argv = append([]string{"sh", "-c", `exec "$0" "$@" 2>&1`}, command.Argv...)
			worker := harness.Spawn(t, command)
			for _, name := range []string{"before", "after"} {
				status, answer := post(t, b, "/api/v1/jobs", `{"queue":"greet","args":["`+name+`"]}`)
				equal(t, "submission: "+answer, status, 201)
				worker.AwaitLines(1, func(line string) bool { return line == "Hello, "+name })
				if name == "before" {
					b.Terminate()
					b.Restart()
				}
			}
		})
	}
}

// TestExamplesHaveShortInstructions checks that each folder says how to run what is in it.
func TestExamplesHaveShortInstructions(t *testing.T) {
	t.Parallel()
	for _, e := range examples {
		text, err := os.ReadFile(filepath.Join(exampleFolder(t, e.name), "README.md"))
		check(t, err)
		for _, command := range [][]string{e.producer, e.worker} {
			if line := strings.Join(command, " "); !strings.Contains(string(text), line) {
				t.Errorf("%s/README.md does not mention %q", e.name, line)
			}
		}
	}
}
