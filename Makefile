# make lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
TOOLS   := bin/tools
FUZZTIME ?= 60s
SEEDS    ?= 1000
TORTURE_ROUNDS ?= 100

# The module in this folder is the program. The others have libraries of their own: tests, packaging, an example.
MODULES = $(patsubst %/,%,$(dir $(shell git ls-files '*go.mod')))

# Tests compile with the flags of packaging/program.sh, so that each package is compiled once. The race detector needs cgo. make lint vets.
export GOFLAGS := -trimpath -vet=off
export CGO_ENABLED := 0

# Compiles packages and their tests without running them. With a larger heap the compiler takes a quarter less time. Tests and the broker
# run with the usual heap, as for users.
COMPILE := GOGC=400 go list -export -test -deps

# The broker under test is built as it is released.
TESTED := $(CURDIR)/.cache/test/broker
INTEGRATION := BROKER_BIN=$(TESTED) go -C integration test -count=1

# Tests whose output is kept and counted, and parts of make test whose time is printed at its end.
GOTEST := .ci/test.sh
TIMED  := .ci/timed.sh

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/broker as it is released, with the links bin/gearmand and bin/beanstalkd
	VERSION=$(VERSION) packaging/program.sh $$(go env GOARCH) bin/broker
	ln -sf broker bin/gearmand
	ln -sf broker bin/beanstalkd

.PHONY: man
man: ## write the manual pages to bin/man, completions to bin/completions, the documentation in HTML to bin/docs
	go run -tags man ./cmd/broker man bin

.PHONY: run
run: build ## start the broker with its store in ./data
	bin/broker serve

.PHONY: tested
tested:
	@echo "== build the broker"
	VERSION=$(VERSION) packaging/program.sh $$(go env GOARCH) $(TESTED)

.PHONY: test
test: ## install the programs that the tests need, then test the code and the built broker
	@.ci/summary.sh $(MAKE) --no-print-directory test-parts

.PHONY: test-parts
test-parts:
	@$(TIMED) preparation $(MAKE) --no-print-directory --jobs 2 clients tool-oapi-codegen tool-gotestsum $(if $(filter true,$(CI)),race-compiled,units-compiled)
	@echo "== test the packages"
	@$(MAKE) --no-print-directory $(if $(filter true,$(CI)),race unraced,units)
	@$(TIMED) build $(MAKE) --no-print-directory tested integration-compiled
	@echo "== test the built broker; nothing of this is cached, since Go cannot know that it depends on the program"
	@BROKER_BIN=$(TESTED) DIR=integration $(TIMED) integration $(GOTEST) integration -count=1 -timeout 30m $(LONGEST) $$(cd integration && go list ./... | grep -vE '^broker/integration(/console|/cluster|/packages)?$$')
	@BROKER_FOLLOWER=1 BROKER_BIN=$(TESTED) DIR=integration $(TIMED) follower $(GOTEST) follower -count=1 -timeout 10m -run '$(THROUGH)' .

# The longest packages begin first, so that no processor waits for them at the end.
LONGEST := . ./console ./cluster

# Clients of all protocols that reach the broker through a node that follows.
THROUGH := TestOfficialClientPushes|TestWorkqAddLease|TestGoBeanstalk|TestConveyorWorkers|TestGearmanCommandLineClientAndWorker|TestSQSFlowsOfPublishedClients|TestAnETagHolds|TestExamples$$

.PHONY: integration-compiled
integration-compiled:
	@cd integration && $(COMPILE) ./... >/dev/null

.PHONY: clients
clients:
	@echo "== install the clients of other projects"
	@.ci/clients.sh

tool-%:
	@.ci/tools.sh $*

.PHONY: units-compiled
units-compiled:
	@echo "== compile the packages and their tests"
	@$(COMPILE) ./... >/dev/null

.PHONY: units
units: units-compiled tool-gotestsum
	@$(TIMED) units $(GOTEST) units -timeout 30m ./...

.PHONY: pictures
pictures: tested ## leave pictures of all pages of the console, in all sizes, in .cache/screenshots
	$(INTEGRATION) -run TestEveryPageInEverySize ./console -pictures

.PHONY: test-packages
test-packages: clients tested tool-go-licenses tool-helm tool-kubeconform tool-nfpm ## test what packaging makes: deb and rpm packages, the image, the chart, alerts and dashboards
	@echo "== test the packages, the image and the chart"
	go -C packaging test ./...
	$(INTEGRATION) -timeout 30m ./packages

.PHONY: check
check: replaced lint dead licenses race fuzz-short sim-short ## the gates: libraries as published, lint, dead code, licenses, race detector, fuzz of what changed, simulation

.PHONY: nightly
nightly: tested clients fuzz sim race-all torture compat ## what takes hours or limits durations: long fuzz and simulation, torture, scale
	$(INTEGRATION) -tags nightly -timeout 3h . ./bench ./cluster

.PHONY: lint
lint: tool-gofumpt tool-golangci-lint ## format, vet and lint
	@unformatted=$$($(TOOLS)/gofumpt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofumpt-ed:"; echo "$$unformatted"; exit 1; fi
	@for module in $(MODULES); do \
		echo "== lint $$module"; cd $(CURDIR)/$$module; GOGC=400 $(CURDIR)/$(TOOLS)/golangci-lint run --allow-parallel-runners --build-tags nightly,man ./...; \
	done

.PHONY: fmt
fmt: tool-golangci-lint ## format all files as lint wants them
	@for module in $(MODULES); do cd $(CURDIR)/$$module; $(CURDIR)/$(TOOLS)/golangci-lint fmt ./...; done

.PHONY: dead
dead: tool-deadcode ## find functions that nothing reaches
	@for module in $(MODULES); do \
		unreached=$$(cd $$module && GOGC=400 $(CURDIR)/$(TOOLS)/deadcode -tags nightly,man -test ./...); \
		if [ -n "$$unreached" ]; then echo "$$unreached"; exit 1; fi; \
	done

.PHONY: licenses
licenses: tool-go-licenses ## check that NOTICE is complete and every library's license allowed
	@.ci/licenses.sh check

.PHONY: notice
notice: tool-go-licenses ## renew NOTICE after a change of the libraries
	@.ci/licenses.sh write

.PHONY: replaced
replaced: ## check that go.mod takes all libraries as published
	@.ci/replaced.sh

# With the race detector these tests take minutes. One goroutine does nearly all of the work of these tests, and all of it in these
# packages. make nightly runs everything with the race detector.
SLOW := TestCrashDuringRecoveryLosesNoAcknowledgedJob|TestNothingAcknowledgedIsLostInACrash|TestFlippedBits|$\
	TestFailedRecoveryIsAnErrorOfOpen|TestNothingIsLostInALongRun|TestTornTailIsCut|$\
	TestCrashDuringUpgradeLosesNoJob|TestSharingTable|TestLongestWaitingWorkerGetsTheJob|TestRestoreYieldsTheStoreAtThatTime|$\
	TestSalvagedStoreServesTheRemainingJobs|TestEveryAppendOutcomeKeepsAcknowledgedJobs|TestDocsListTheRightsOfEachRole|$\
	TestSalvageLosesTheDamagedBlocksOnly|TestJobsThatLeaveInRandomOrderKeepTablesLarge|TestNewJobsAreNotWrittenAgain|$\
	TestRolesLimitPagesAndChanges|TestMemberReplaysEntriesLostInACrash|TestSalvageReadsTheOtherTablesAndTheRestOfACutOne|$\
	TestStateAfterEachActionOnEachState|TestSalvageWithoutAManifestReadsAllTablesAndLogs|TestSeedsThatOnceFailed
# These lives of the simulation are among those of sim-short.
SIMULATION := TestSimulatedLivesKeepAcknowledgedState
SEQUENTIAL := ^broker/(core/internal/(find|limit|link|machine|queue|record|timer)|core/crontab|config)$$
# Tests of memory, which the race detector changes, and tests that its build tag leaves out.
MEASURING := Allocat|LittleMemory|KeepNoMemory|KeepTheRestInMemory|NoNewPage|NoTimeline|CostAnIndexOnly|LeaveNothingOnDisk

RACED = $$(go list ./... | grep -vE '$(SEQUENTIAL)')

.PHONY: race-compiled
race-compiled:
	@echo "== compile the packages and their tests with the race detector"
	@CGO_ENABLED=1 $(COMPILE) -race $(RACED) >/dev/null

# Where CI is true, make test begins with this instead of testing without the race detector, so here Go finds the results in its cache.
.PHONY: race
race: race-compiled tool-gotestsum ## test with the race detector, without integration and what has no use for it
	@echo "== test with the race detector"
	@CGO_ENABLED=1 $(TIMED) race $(GOTEST) race -race -timeout 30m -skip '$(SLOW)|$(SIMULATION)' $(RACED)

# What make race leaves out, without the race detector.
.PHONY: unraced
unraced: tool-gotestsum
	@echo "== test what it leaves out"
	@$(TIMED) sequential $(GOTEST) sequential -timeout 30m $$(go list ./... | grep -E '$(SEQUENTIAL)')
	@$(TIMED) unraced $(GOTEST) unraced -timeout 30m -run '$(SLOW)|$(MEASURING)' $$(grep -rlE --include='*_test.go' --exclude-dir=integration '^func ($(SLOW)|Test.*($(MEASURING)))' . | xargs -n 1 dirname | sort -u)

.PHONY: race-all
race-all:
	CGO_ENABLED=1 go test -race -timeout 2h ./...

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (60s)
	.ci/fuzz.sh all $(FUZZTIME)

.PHONY: fuzz-short
fuzz-short:
	.ci/fuzz.sh changed 8

.PHONY: sim
sim: ## simulate SEEDS (1000) lives of the core with crashes
	SIM_SEEDS=$(SEEDS) go test -count=1 -timeout 2h -run Simulated -v ./core/internal/sim

.PHONY: sim-short
sim-short:
	SIM_SEEDS=100 go test -count=1 -timeout 30m -run '$(SIMULATION)' -v ./core/internal/sim

.PHONY: torture
torture: tested ## kill the broker TORTURE_ROUNDS (100) times under load, fill its disk, flood it
	TORTURE_ROUNDS=$(TORTURE_ROUNDS) $(INTEGRATION) -tags nightly -timeout 3h -v ./torture

.PHONY: compat
compat: tested clients ## run clients and suites of other projects (checkouts in SUITES), write docs/compatibility.md
	BROKER_BIN=$(TESTED) go run -C integration ./compat -suites "$(if $(SUITES),$(abspath $(SUITES)))"

.PHONY: bench
bench: tested ## measure the broker beside gearmand, beanstalkd, Faktory and Redis where they are installed
	BROKER_BIN=$(TESTED) go run -C integration ./bench $(BENCHFLAGS)

# An earlier build next to today's, in turns, each measurement on a new server; today's takes part twice, which shows the noise.
.PHONY: bench-before
bench-before: tested ## measure the broker next to that of the revision REV, in turns
	@test -n "$(REV)" || { echo "which revision? make bench-before REV=v1.0"; exit 1; }
	git worktree prune
	git worktree add --force --detach .cache/before $(REV)
	VERSION=$(REV) .cache/before/packaging/program.sh $$(go env GOARCH) $(CURDIR)/.cache/test/before
	git worktree remove --force .cache/before
	BROKER_BIN=$(TESTED) go run -C integration ./bench -before $(CURDIR)/.cache/test/before -servers '^(broker|before|again) (sync|none)$$|^(broker|before,) cluster of 3$$' \
		-protocols gearman,workq,faktory -modes a,b -rounds 8 -jobs 1M $(BENCHFLAGS)

.PHONY: deb
deb: tool-go-licenses tool-nfpm ## make the deb package of the broker for this machine in bin/deb
	rm -rf bin/deb
	VERSION=$(VERSION) ARCHS=$$(go env GOARCH) KINDS=deb PACKAGES=broker packaging/build.sh bin/deb

.PHONY: packages
packages: tool-go-licenses tool-nfpm ## make deb and rpm packages for amd64 and arm64 in bin/packages
	VERSION=$(VERSION) packaging/build.sh

.PHONY: release
release: tool-go-licenses tool-nfpm ## build programs, packages, images, lists of contents and checksums in bin/release; publish nothing
	VERSION=$(VERSION) packaging/release.sh

.PHONY: image
image: ## make the container image for this machine in bin/broker-image.tar, without a container engine
	VERSION=$(VERSION) packaging/program.sh $$(go env GOARCH) bin/image/broker
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) go run -C packaging ./image -program $(CURDIR)/bin/image/broker -arch $$(go env GOARCH) \
		-version $(VERSION) -out $(CURDIR)/bin/broker-image.tar

.PHONY: tools
tools: ## install all programs that the gates and packaging need into bin/tools; each target installs its own
	@.ci/tools.sh

.PHONY: clean
clean: ## remove what was built
	rm -rf bin .cache
