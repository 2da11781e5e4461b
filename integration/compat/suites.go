package main

import "fmt"

// Kinds of output that a suite prints.
const (
	goTest = iota
	miniTest
	phpUnit
	phpt
	pytest
	mocha
	tap
	cucumber
)

// suite is a set of tests of one client library.
type suite struct {
	name     string // in the page; also the name of its checkout
	protocol string
	what     string // what runs, in the page
	// tests are the names of integration tests, a regular expression; empty for a suite of another project.
	tests string
	// version prints the version of the library; empty: that of the checkout.
	version string
	// shell is what runs a suite of another project, in its checkout.
	shell   string
	before  string // a shell command that prepares the server for it
	env     []string
	output  int
	server  string // the original server: gearmand, faktory, beanstalkd; empty: none is run
	missing string // why no original server is run
	known   int    // tests that the broker is known to fail
	differs string // what they and skipped tests are
}

const (
	debian = "dpkg-query -W -f '${Version}' "
	npm    = "node -p \"require('./integration/clients/node/package-lock.json').packages['node_modules/'+process.argv[1]].version\" "
	goMod  = "go -C integration list -m -f '{{.Version}}' "
	python = "/usr/bin/python3 -m pytest -q --tb=no -p no:cacheprovider "
	ruby   = `ruby -W0 -I"$STUBS" -Ilib -Itest %s -e 'Dir["test/*_test.rb"].sort.each { |f| require "./" + f }' -- --seed 1`
)

var suites = []suite{
	{
		name: "pecl-gearman, programs of the integration tests", protocol: "Gearman", tests: "^TestPHP",
		version: debian + "php-gearman", server: gearmand, what: "foreground, background, callbacks, a worker that dies",
	},
	{
		name: "Gearman::Client for Perl, programs of the integration tests", protocol: "Gearman", tests: "^TestPerl",
		version: debian + "libgearman-client-perl", server: gearmand,
		what: "outcomes, exceptions, task sets, retries, beside a worker in PHP",
	},
	{
		name: "gearman and gearadmin", protocol: "Gearman", tests: "^TestGear(manCommandLine|admin)",
		version: debian + "gearman-tools", server: gearmand, what: "clients, workers, administration",
	},
	{
		name: "pecl-gearman", protocol: "Gearman", what: "its own tests", output: phpt, server: gearmand, known: 1,
		shell: `TEST_PHP_EXECUTABLE=$(command -v php) NO_INTERACTION=1 php "$(ls /usr/lib/php/*/build/run-tests.php | tail -1)" -q -n ` +
			`-d extension_dir="$(php -r 'echo ini_get("extension_dir");')" -d extension=gearman.so tests`,
		differs: "the one that fails is newer than Debian's release of the extension",
	},
	{
		name: "GearmaNode", protocol: "Gearman", output: mocha, server: gearmand,
		what:    "its own tests, without two of a server that is not there, which end the run on Node 20",
		shell:   `node_modules/.bin/mocha --exit -R dot -i -g "submiting fails|cause load balancing to other one"`,
		differs: "",
	},
	{
		name: "gearman-go", protocol: "Gearman", output: goTest, server: gearmand,
		what:    "its own tests with `-integration`, without those that need a worker in Perl or a second server",
		shell:   "go test -count=1 -json -timeout 2m -skip 'TestClientMultiDo|TestPool' ./client ./worker -integration",
		differs: "the worker's tests skip themselves",
	},
	{
		name: "Faktory's client and faktory_worker_go", protocol: "Faktory", tests: "^Test(OfficialClient|Go(Worker|Client)|NodeAndGo)",
		version: goMod + "github.com/contribsys/faktory github.com/contribsys/faktory_worker_go", server: faktory,
		what:    "push, fetch, queues, sets, batches, tracking, quiet, stop",
		differs: "Faktory's free server has neither batches nor tracking: skipped there",
	},
	{
		name: "faktory_worker for Node, programs of the integration tests", protocol: "Faktory", tests: "^TestNode",
		version: npm + "faktory-worker", server: faktory, what: "push, bulk push, work, password, stop",
	},
	{
		name: "faktory_worker_node", protocol: "Faktory", output: tap, server: faktory, what: "its own tests",
		shell: "npx ava --tap 'src/__tests__/*.ts'", env: []string{"FAKTORY_URL=tcp://127.0.0.1:7419"},
		differs: "the tests skip four themselves",
	},
	{
		name: "faktory_worker_ruby", protocol: "Faktory", output: miniTest, server: faktory,
		what:    "its own tests, without those of Rails' Active Job",
		shell:   fmt.Sprintf(ruby, "-ractive_support -ractive_support/core_ext/numeric/time"),
		differs: "Faktory's free server has no batches, tracking and unique jobs: skipped there, run here",
	},
	{
		name: "pheanstalk, programs of the integration tests", protocol: "Beanstalk",
		tests: "^TestBeanstalkFlowsOfPublishedClients$/^pheanstalk$", version: debian + "php-pda-pheanstalk",
		server: beanstalkd, what: "bodies, life, order, tubes, stats, time to run",
	},
	{
		name: "Laravel's queue, programs of the integration tests", protocol: "Beanstalk",
		tests: "^TestBeanstalkFlowsOfPublishedClients$/^Laravel$", version: debian + "php-illuminate-queue",
		server: beanstalkd, what: "works, retries, gives up, later, raw",
	},
	{
		name: "Beaneater, programs of the integration tests", protocol: "Beanstalk",
		tests: "^TestBeanstalkFlowsOfPublishedClients$/^Beaneater$", version: debian + "ruby-beaneater",
		server: beanstalkd, what: "puts, processes, clears, lists",
		differs: "the last flow wants a value for each key of `stats`, and beanstalkd leaves one empty",
	},
	{
		name: "jackd, programs of the integration tests", protocol: "Beanstalk",
		tests: "^TestBeanstalkFlowsOfPublishedClients$/^jackd$", version: npm + "jackd", server: beanstalkd,
		what: "bodies, life, tubes, waits",
	},
	{
		name: "go-beanstalk", protocol: "Beanstalk", tests: "^TestGoBeanstalk$",
		version: goMod + "github.com/beanstalkd/go-beanstalk", server: beanstalkd, what: "life of a job, errors, tubes",
	},
	{
		name: "beaneater", protocol: "Beanstalk", output: miniTest, server: beanstalkd, what: "its own tests",
		shell: fmt.Sprintf(ruby, ""),
	},
	{
		name: "pheanstalk", protocol: "Beanstalk", output: phpUnit, server: beanstalkd, what: "its own tests",
		shell: `"$(ls vendor/bin/phpunit 2>/dev/null || command -v phpunit)" --bootstrap tests/bootstrap.php tests`,
		env:   []string{"SERVER_HOST=127.0.0.1"},
		known: 3,
		differs: "tests of Unix sockets skip themselves; `testNoDeadlineSoonDuringDeleteJob`, which runs with three kinds " +
			"of sockets, needs ten deletes with pauses of 0.1 s in a second: here each is synced, which a busy disk delays",
	},
	{
		name: "redis for Python and Node as Qless clients", protocol: "Qless", tests: "^TestQlessFlowsOfPublishedRedisClients$",
		version: debian + "python3-redis && echo && " + npm + "redis", missing: onlyOurs,
		what: "all of Qless's calls, plain, by TLS with a password, in a namespace",
	},
	{
		name: "qless-core", protocol: "Qless", output: pytest, known: 1,
		what:    "its own tests, translated to Python 3 by 2to3",
		shell:   python + "test",
		env:     []string{"REDIS_URL=redis://localhost:6379/?decode_responses=true"},
		missing: "Redis 7 refuses this version of the script, which changes a global table",
		differs: "the one that fails compares a text of Python 2 and calls no server",
	},
	{
		name: "boto3", protocol: "SQS", tests: "^TestSQSFlowsOfPublishedClients$/^boto3", version: debian + "python3-boto3",
		missing: aws, what: "messages, batches, queues, groups, dead letters; Query and JSON, with and without keys",
	},
	{
		name: "client-sqs and sqs-consumer, programs of the integration tests", protocol: "SQS",
		tests:   "^TestSQSFlowsOfPublishedClients$/^client-sqs",
		version: npm + "@aws-sdk/client-sqs && " + npm + "sqs-consumer", missing: aws, what: "sends, consumes, closes",
	},
	{
		name: "Celery on SQS", protocol: "SQS", tests: "^TestCeleryOnSQS$",
		version: debian + "python3-celery && echo && " + debian + "python3-kombu", missing: aws,
		what: "tasks, retries, a worker that kills itself",
	},
	{
		name: "sqs-consumer", protocol: "SQS", output: cucumber, missing: aws,
		what: "its own tests with a server, of a release that expects LocalStack's port",
		before: "curl -sf 'http://127.0.0.1:4566/?Action=CreateQueue&QueueName=sqs-consumer-data" +
			"&Attribute.1.Name=VisibilityTimeout&Attribute.1.Value=30' >/dev/null",
		shell: "node_modules/.bin/cucumber-js --config test/config/cucumber.mjs --format summary",
	},
	{
		name: "kombu", protocol: "SQS", output: pytest, missing: aws, known: 1,
		what:    "its own integration tests of SQS, unchanged, with a checkout of botocore that knows their parameters",
		shell:   "PYTHONPATH=.:../botocore " + python + "-E sqs t/integration/test_sqs.py",
		env:     []string{"SQS_PORT=4566"},
		differs: "the one that fails wants topics of Amazon SNS for fan-out",
	},
	{
		name: "moto", protocol: "SQS", output: pytest, missing: aws, known: 35,
		what: "its own tests of SQS against a server (`TEST_SERVER_MODE`), unchanged, without the emptying between tests that " +
			"moto's server has",
		shell: "PYTHONPATH=.:../botocore " + python + "tests/test_sqs/test_sqs.py",
		env: []string{
			"TEST_SERVER_MODE=true", "TEST_SERVER_MODE_ENDPOINT=http://localhost:4566", "AWS_ACCESS_KEY_ID=testing",
			"AWS_SECRET_ACCESS_KEY=testing", "AWS_DEFAULT_REGION=us-east-1",
		},
		differs: "7 ask Amazon STS for an account, 3 expect moto's account or port, 9 send attributes that the broker refuses " +
			"(a name with a space at its end, `FifoQueue` of a standard queue); most of the other 16 compare the text of an error",
	},
}

const (
	aws      = "Amazon SQS cannot be installed"
	onlyOurs = "the programs need Qless's script, which this project does not have"
)
