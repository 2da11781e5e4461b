# make lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
TOOLS   := bin/tools
UNITS   := $$(go list ./... | grep -v '/integration')
FUZZTIME ?= 60s
SEEDS    ?= 1000
TORTURE_ROUNDS ?= 100

# Tests compile everything with the same flags, so that each package is compiled once: without cmd/broker/default.pgo and
# -trimpath, which are for released programs.
PLAIN := GOFLAGS=-pgo=off

# The broker under test.
TESTED := $(CURDIR)/.cache/test/broker

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/broker, and bin/gearmand as a link to it
	go build -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/broker ./cmd/broker
	ln -sf broker bin/gearmand

.PHONY: man
man: ## write the manual pages to bin/man, completions to bin/completions, the documentation in HTML to bin/docs
	$(PLAIN) go run -tags man ./cmd/broker man bin

.PHONY: run
run: build ## start the broker with its store in ./data
	bin/broker serve

.PHONY: test
test: clients tools ## install what the tests need, then run all of them
	$(PLAIN) go build -o $(TESTED) ./cmd/broker
	$(PLAIN) go test -timeout 30m $(UNITS)
	# Go cannot know that these depend on the built program: no cached results.
	BROKER_BIN=$(TESTED) $(PLAIN) go test -count=1 -timeout 30m ./integration/...

.PHONY: check
check: tools replaced lint dead licenses race fuzz-short sim-short ## the gates: libraries as published, lint, dead code, licenses, race detector, fuzz of what changed, simulation

.PHONY: nightly
nightly: clients build fuzz sim race-all torture ## what takes hours or limits durations: long fuzz and simulation, torture, scale
	BROKER_BIN=$(CURDIR)/bin/broker $(PLAIN) go test -tags nightly -count=1 -timeout 3h ./integration ./integration/bench ./integration/cluster

.PHONY: lint
lint: tools ## format, vet and lint
	@unformatted=$$($(TOOLS)/gofumpt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofumpt-ed:"; echo "$$unformatted"; exit 1; fi
	$(PLAIN) go vet -tags nightly ./...
	$(PLAIN) $(TOOLS)/golangci-lint run --build-tags nightly ./...

.PHONY: fmt
fmt: tools ## format all files as lint wants them
	$(TOOLS)/golangci-lint fmt ./...

.PHONY: dead
dead: tools ## find functions that nothing reaches
	@unreached=$$($(PLAIN) $(TOOLS)/deadcode -tags nightly -test ./...); \
	if [ -n "$$unreached" ]; then echo "$$unreached"; exit 1; fi

.PHONY: licenses
licenses: tools ## check that NOTICE is complete and every library's license allowed
	@.ci/licenses.sh check

.PHONY: notice
notice: tools ## renew NOTICE after a change of the libraries
	@.ci/licenses.sh write

.PHONY: replaced
replaced: ## check that go.mod takes all libraries as published
	@.ci/replaced.sh

# make test runs these too; with the race detector they take minutes. One goroutine does nearly all of the work of these tests, and
# all of it in these packages. make nightly runs everything with the race detector.
SLOW := TestRecoveryMayCrashToo|TestNothingAcknowledgedIsLostInACrash|TestFlippedBits|TestFailedRecoveryIsAnErrorOfOpen|$\
	TestNothingIsLostInALongRun|TestPromisesHoldInSimulatedLives|TestTornTailIsCut|TestUpgradeMayCrash|TestSharingTable|$\
	TestLongestWaitingWorkerGetsTheJob
SEQUENTIAL := ^broker/(core/internal/(machine|queue|record|timer)|core/crontab|config)$$

.PHONY: race
race: ## test with the race detector, without integration and what has no use for it
	$(PLAIN) go test -race -timeout 30m -skip '$(SLOW)' $$(printf '%s\n' $(UNITS) | grep -vE '$(SEQUENTIAL)')

.PHONY: race-all
race-all:
	$(PLAIN) go test -race -timeout 2h $(UNITS)

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (60s)
	.ci/fuzz.sh all $(FUZZTIME)

.PHONY: fuzz-short
fuzz-short:
	.ci/fuzz.sh changed 8

.PHONY: sim
sim: ## simulate SEEDS (1000) lives of the core with crashes
	SIM_SEEDS=$(SEEDS) $(PLAIN) go test -count=1 -timeout 2h -run Simulated -v ./core/internal/sim

.PHONY: sim-short
sim-short:
	SIM_SEEDS=100 $(PLAIN) go test -count=1 -timeout 30m -run Simulated -v ./core/internal/sim

.PHONY: torture
torture: build ## kill the broker TORTURE_ROUNDS (100) times under load, fill its disk, flood it
	TORTURE_ROUNDS=$(TORTURE_ROUNDS) BROKER_BIN=$(CURDIR)/bin/broker $(PLAIN) go test -tags nightly -count=1 -timeout 3h -v ./integration/torture

.PHONY: bench
bench: ## measure the broker beside gearmand, beanstalkd, Faktory and Redis where they are installed
	go run ./integration/bench $(BENCHFLAGS)

.PHONY: profile
profile: ## load the broker and keep where its time goes, for the compiler, in cmd/broker/default.pgo
	mkdir -p .cache/profiles && rm -f .cache/profiles/*.pprof
	go run ./integration/bench -profiles .cache/profiles -rounds 1 -jobs 300k -modes a,b,c,d
	go tool pprof -proto .cache/profiles/*.pprof > cmd/broker/default.pgo

.PHONY: packages
packages: tools ## make deb and rpm packages for amd64 and arm64 in bin/packages
	packaging/build.sh

.PHONY: release
release: tools ## build programs, packages, images, lists of contents and checksums in bin/release; publish nothing
	VERSION=$(VERSION) packaging/release.sh

.PHONY: image
image: ## make the container image for this machine in bin/broker-image.tar, without a container engine
	VERSION=$(VERSION) packaging/program.sh $$(go env GOARCH) bin/image/broker
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) go run ./packaging/image -program bin/image/broker -arch $$(go env GOARCH) \
		-version $(VERSION) -out bin/broker-image.tar

.PHONY: clients
clients: ## install the programs of others that the integration tests use
	@.ci/clients.sh

.PHONY: tools
tools: ## install the programs that check and packages need into bin/tools
	@.ci/tools.sh

.PHONY: clean
clean: ## remove what was built
	rm -rf bin .cache
