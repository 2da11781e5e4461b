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

// example is one of the examples of a folder: the commands of its producer and its worker, as README.md has them.
type example struct {
	name, folder     string
	needs            []string
	node             bool     // it needs packages from npm
	portFlag         string   // the flag that opens its port; empty: none
	producer, worker []string // in the folder
}

// The examples that are played with all others of this list: those of the ports that are open by default.
var examples = []example{
	{
		name: "php", folder: "php", needs: []string{"php", "php-gearman"}, producer: []string{"php", "producer.php"},
		worker: []string{"php", "worker.php"},
	},
	{
		name: "perl", folder: "perl", needs: []string{"perl", "perl-gearman"},
		producer: []string{"perl", "producer.pl"}, worker: []string{"perl", "worker.pl"},
	},
	{
		name: "python", folder: "python", needs: []string{"python3"}, producer: []string{"python3", "producer.py"},
		worker: []string{"python3", "worker.py"},
	},
	{
		name: "go", folder: "go", producer: []string{"go", "run", "./producer"},
		worker: []string{"go", "run", "./worker"},
	},
	{
		name: "node", folder: "node", node: true, producer: []string{"node", "producer.js"},
		worker: []string{"node", "worker.js"},
	},
	{
		name: "ruby", folder: "ruby", needs: []string{"ruby"}, producer: []string{"ruby", "producer.rb"},
		worker: []string{"ruby", "worker.rb"},
	},
	{
		name: "shell", folder: "shell", needs: []string{"curl", "gearman"},
		producer: []string{"./producer.sh"}, worker: []string{"./worker.sh"},
	},
}

// optionalExamples are played with themselves and with python.
var optionalExamples = []example{
	{
		name: "php-beanstalk", folder: "php", needs: []string{"php", "php-pheanstalk"}, portFlag: "--beanstalk",
		producer: []string{"php", "beanstalk_producer.php"}, worker: []string{"php", "beanstalk_worker.php"},
	},
	{
		name: "python-beanstalk", folder: "python", needs: []string{"python3"}, portFlag: "--beanstalk",
		producer: []string{"python3", "beanstalk_producer.py"}, worker: []string{"python3", "beanstalk_worker.py"},
	},
	{
		name: "node-beanstalk", folder: "node", node: true, portFlag: "--beanstalk",
		producer: []string{"node", "beanstalk_producer.js"}, worker: []string{"node", "beanstalk_worker.js"},
	},
	{
		name: "go-conveyor", folder: "go", portFlag: "--conveyor",
		producer: []string{"go", "run", "./conveyorproducer"}, worker: []string{"go", "run", "./conveyorworker"},
	},
	{
		name: "python-sqs", folder: "python", needs: []string{"python3-boto3"}, portFlag: "--sqs",
		producer: []string{"python3", "sqs_producer.py"}, worker: []string{"python3", "sqs_worker.py"},
	},
	{
		name: "node-sqs", folder: "node", node: true, portFlag: "--sqs",
		producer: []string{"node", "sqs_producer.js"}, worker: []string{"node", "sqs_worker.js"},
	},
	{
		name: "go-sqs", folder: "go", portFlag: "--sqs",
		producer: []string{"go", "run", "./sqsproducer"}, worker: []string{"go", "run", "./sqsworker"},
	},
}

// The messages of celeryExample are for its own workers only.
var celeryExample = example{
	name: "python-celery", folder: "python", needs: []string{"python3-celery"}, portFlag: "--sqs",
	producer: []string{"python3", "celery_producer.py"},
	worker:   []string{"celery", "-A", "celery_app", "worker", "--pool=solo"},
}

// need skips the test if the example cannot run here.
func (e *example) need(t *testing.T) {
	t.Helper()
	if harness.Need(t, e.needs...); e.node {
		harness.NeedNode(t)
	}
}

// exampleFolder is where the examples of a language are.
func exampleFolder(t *testing.T, name string) string {
	t.Helper()
	root, err := server.Root()
	check(t, err)
	return filepath.Join(root, "examples", name)
}

// playing is a broker with the ports of an example, and what its programs find in their environment.
type playing struct {
	*harness.Broker
	env []string
}

// startFor starts a broker with the port of an example.
func startFor(t *testing.T, e *example) *playing {
	t.Helper()
	p := &playing{}
	o := harness.Options{}
	if e.portFlag != "" {
		addr, err := server.FreeAddr()
		check(t, err)
		o.Args = []string{e.portFlag, addr}
		p.env = map[string][]string{
			"--beanstalk": {"BEANSTALKD_SERVER=" + addr},
			"--conveyor":  {"CONVEYOR_SERVER=" + addr},
			"--sqs":       {"AWS_ENDPOINT_URL_SQS=http://" + addr, "SQS_SERVER=" + addr},
		}[e.portFlag]
	}
	p.Broker = harness.Start(t, o)
	if e.name != celeryExample.name { // which reads it, too
		p.env = append(p.env, "BROKER_URL=http://"+p.HTTP)
	}
	p.env = append(p.env, "GEARMAN_SERVER="+p.Gearman, "FAKTORY_URL="+p.FaktoryURL(),
		"NODE_PATH="+filepath.Join(filepath.Dir(harness.Script(t, "node")), "node", "node_modules"),
		"NODE_NO_WARNINGS=1")
	return p
}

// command is a command of an example against the broker.
func (p *playing) command(t *testing.T, e *example, argv ...string) harness.Command {
	t.Helper()
	folder, argv := exampleFolder(t, e.folder), slices.Clone(argv)
	env := p.env
	switch {
	case argv[0] == "go":
		argv = append([]string{harness.Program(t, "examples/go/"+filepath.Base(argv[2]))}, argv[3:]...)
	case argv[0] == "celery":
		argv = append([]string{"/usr/bin/python3", "-m"}, argv...)
		env = append(slices.Clone(env), "PYTHONPATH="+folder)
	case strings.HasPrefix(argv[0], "./"):
		argv[0] = filepath.Join(folder, argv[0])
	default:
		argv[1] = filepath.Join(folder, argv[1])
		if argv[0] == "python3" {
			argv[0] = "/usr/bin/python3" // Debian's, whatever else is in PATH
		}
	}
	return harness.Command{Argv: argv, Env: env}
}

// work starts the worker of an example.
func (p *playing) work(t *testing.T, e *example) *harness.Child {
	t.Helper()
	command := p.command(t, e, e.worker...)
	command.Argv = append([]string{"sh", "-c", `exec "$0" "$@" 2>&1`}, command.Argv...)
	return harness.Spawn(t, command)
}

// wantGreeted submits a job with the producer of an example, which a worker must run.
func (p *playing) wantGreeted(t *testing.T, worker *harness.Child, producer *example, name string) {
	t.Helper()
	producer.need(t)
	if printed := harness.Run(t,
		p.command(t, producer, append(slices.Clone(producer.producer), name)...)); printed == "" {
		t.Errorf("the producer of %s prints nothing", producer.name)
	}
	worker.AwaitLines(1, func(line string) bool { return strings.HasSuffix(line, "Hello, "+name) })
}

// TestExamples starts the worker of each example and lets producers of other examples submit jobs to it.
func TestExamples(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	python := slices.IndexFunc(examples, func(e example) bool { return e.name == "python" })
	play := func(e *example, producers []*example) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.need(t)
			p := startFor(t, e)
			worker := p.work(t, e)
			for _, producer := range producers {
				p.wantGreeted(t, worker, producer, e.name+"-from-"+producer.name)
			}
			if e.portFlag != "" && len(producers) > 1 { // and the other way round
				worker.Kill()
				p.wantGreeted(t, p.work(t, &examples[python]), e, "python-from-"+e.name)
			}
		})
	}
	all := make([]*example, len(examples))
	for i := range examples {
		all[i] = &examples[i]
	}
	for _, e := range all {
		play(e, all)
	}
	for i := range optionalExamples {
		play(&optionalExamples[i], []*example{&optionalExamples[i], &examples[python]})
	}
	play(&celeryExample, []*example{&celeryExample})
}

// TestExampleWorkersOutliveARestartOfTheBroker restarts the broker below each worker, and submits a job afterwards.
func TestExampleWorkersOutliveARestartOfTheBroker(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for _, e := range slices.Concat(examples, optionalExamples) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			harness.Need(t, "curl")
			e.need(t)
			p := startFor(t, &e)
			worker := p.work(t, &e)
			for _, name := range []string{"before", "after"} {
				status, answer := post(t, p.Broker, "/api/v1/jobs", `{"queue":"greet","args":["`+name+`"]}`)
				equal(t, "submission: "+answer, status, 201)
				worker.AwaitLines(1, func(line string) bool { return strings.HasSuffix(line, "Hello, "+name) })
				if name == "before" {
					p.Terminate()
					p.Restart()
				}
			}
		})
	}
}

// TestExamplesHaveShortInstructions checks that each folder says how to run what is in it.
func TestExamplesHaveShortInstructions(t *testing.T) {
	t.Parallel()
	for _, e := range slices.Concat(examples, optionalExamples, []example{celeryExample}) {
		text, err := os.ReadFile(filepath.Join(exampleFolder(t, e.folder), "README.md"))
		check(t, err)
		for _, command := range [][]string{e.producer, e.worker} {
			if line := strings.Join(command, " "); !strings.Contains(string(text), line) {
				t.Errorf("%s/README.md does not mention %q", e.folder, line)
			}
		}
	}
}
