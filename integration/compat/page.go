package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// result is what came of a suite when it last ran.
type result struct {
	Version  string // of the library
	Broker   string // the version of the broker
	Date     string // of the run
	Ours     count
	Original string // the version of the original server; empty: it was not run
	Theirs   count
}

// results are the last results of all suites.
type results struct {
	Broker, Date string            // the last run
	Suites       map[string]result // by their names
}

func load(file string) (results, error) {
	all := results{Suites: map[string]result{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return all, err
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return all, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

// save writes the results and the page.
func save(root, file string, all results) error {
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs", "compatibility.md"), []byte(page(suites, all)), 0o644)
}

func (s suite) originalName() string { return cmp.Or(s.server, "original server") }

const pageBegin = `# Clients and suites of other projects

Published client libraries, and the test suites of other projects, run against the broker and against the server that
it stands in for.
` + "`make compat`" + ` runs them, writes this page and changes nothing in it that did not run. A number is passed tests of tests that ran.

`

const pageEnd = `
## Run it

` + "```sh" + `
make compat SUITES=/path/to/checkouts
` + "```" + `

The folder holds the checkouts of the suites, named as above; nothing is downloaded into them. Prepare each as its
README says:

- the ones for Node: npm's packages;
- pheanstalk: ` + "`composer install`" + ` or a ` + "`vendor/autoload.php`" + `, and Debian's phpunit;
- faktory_worker_ruby and beaneater: Debian's ruby-minitest, ruby-mocha, ruby-connection-pool, ruby-activesupport;
- pecl-gearman: php8.2-dev;
- gearman-go: ` + "`go mod init`" + `;
- qless-core: python3-pytest, ` + "`2to3 -w -n test qless.py`" + ` and ` + "`make qless.lua`" + `;
- kombu: a checkout of botocore beside it, python3-pytest, python3-boto3, python3-pycurl;
- moto: the same, python3-responses, python3-werkzeug, python3-jinja2, python3-freezegun.

Each run has a network namespace of its own, since the suites expect their server at its usual port. Without
` + "`SUITES`" + ` only the clients run that the integration tests use. The command fails if the broker fails a test
that is not known to fail.

Not part of it: LocalStack's tests of SQS, which need Python packages that Debian does not have. The clients for
Workq and Conveyor in the integration tests are this project's own.

What the broker does on purpose in another way than the original servers is in the [FAQ](faq.md).
`

// page is the page. Results of other versions than the last that ran say so.
func page(all []suite, known results) string {
	var b strings.Builder
	b.WriteString(pageBegin)
	if known.Broker != "" {
		fmt.Fprintf(&b, "The last run was of the broker %s, on %s. Numbers of other versions say so.\n", known.Broker, known.Date)
	}
	var protocols []string
	for _, s := range all {
		if !slices.Contains(protocols, s.protocol) {
			protocols = append(protocols, s.protocol)
		}
	}
	for _, protocol := range protocols {
		fmt.Fprintf(&b, "\n## %s\n\n| suite | version | what runs | broker | original server | what differs |\n|---|---|---|---|---|---|\n",
			protocol)
		for _, s := range all {
			if s.protocol == protocol {
				b.WriteString(row(s, known))
			}
		}
	}
	b.WriteString(pageEnd)
	return b.String()
}

func row(s suite, known results) string {
	r, ran := known.Suites[s.name]
	if !ran {
		return fmt.Sprintf("| %s | | %s | not run here | not run here | |\n", s.name, s.what)
	}
	ours, theirs := r.Ours.String(), "not run: "+s.missing
	if r.Broker != known.Broker {
		ours += fmt.Sprintf(" (older: %s, %s)", r.Broker, r.Date)
	}
	if s.server != "" {
		theirs = "not installed"
		if r.Original != "" {
			theirs = fmt.Sprintf("%s %s: %s", s.server, r.Original, r.Theirs)
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", s.name, r.Version, s.what, ours, theirs, s.differs)
}
