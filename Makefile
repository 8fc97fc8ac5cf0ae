# A target with a "## line" after its name is listed by make help; a new one needs nothing else.
# Works with GNU make 3.81 and BSD tools, as macOS has them. `make test-go`, `run`, `build`, `bench` and `fuzz` need only Go.

GO        ?= go
FUZZTIME  ?= 30s
BENCHTIME ?= 1s
KILLS     ?= 1000
RUN_FLAGS ?=
TESTFLAGS ?=
SIMTIME   ?= 30m
RELEASE   ?= $(VERSION)

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)
LINTER  := .ci/tools/bin/golangci-lint

# One way to build for all targets, so that what one has compiled, no other compiles again, and a second clone does not either: without C,
# so that a binary runs on any host of its kind, and without the paths of this one. grpcnotrace leaves out pages that gRPC would show, and
# with them a template engine, for whose sake the linker keeps every method of every SDK: 20 MB. disable_grpc_modules leaves out how
# Google's storage would be reached by gRPC, which is not used: 5 MB.
BUILD_FLAGS := -trimpath -tags=grpcnotrace,disable_grpc_modules
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out $(BUILD_FLAGS),$(GOFLAGS)) $(BUILD_FLAGS)

# Folders whose tests have the build tag "emulators": the adapters of AWS, and in make test-deep all.
EMULATED := lib/store/dynamo lib/queue/sqs lib/blob/s3
# Packages whose goroutines share what they change.
RACED    := ./lib/lease ./lib/dispatch ./lib/tick ./lib/worker ./lib/node ./lib/queue/local ./lib/store/pebble ./lib/belfry

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run build test test-fuzz test-model model test-go test-race test-api test-clients test-release test-emulators test-template test-aws test-localstack emulators lint lint-rules lint-scripts promises bench bench-lateness bench-aws bench-coldstart fuzz cost chaos mutants mutants-update man docs docs-reference docs-screens template-routes release release-store tools venv clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## run the scheduler here, its data under .belfry, commands allowed as targets
	bin/belfry dev --data .belfry --allow-exec $(RUN_FLAGS)

# Without a git tag the version is the commit; without git it stays empty, and the binary tells what Go noted about the build. What is
# stripped is for debuggers alone.
build: ## build bin/belfry, one static binary with its version in it
	$(GO) build -ldflags "-s -w -X main.version=$(VERSION)" -o bin/belfry ./cmd/belfry

# lambda.norpc leaves out what only the runtime of old, go1.x, wanted.
FUNCTION_FLAGS = -trimpath -tags lambda.norpc,grpcnotrace -ldflags "-s -w -X main.version=$(VERSION)"

# `sam build` calls these, one for each function of template.yaml, with the folder for the result in ARTIFACTS_DIR. GOARCH goes with
# the template's parameter Architecture.
.PHONY: build-ApiFunction build-TickFunction build-WorkerFunction build-DeadLetterFunction
build-ApiFunction build-TickFunction build-WorkerFunction build-DeadLetterFunction:
	CGO_ENABLED=0 GOOS=linux GOARCH=$${GOARCH:-arm64} $(GO) build $(FUNCTION_FLAGS) \
		-o "$(ARTIFACTS_DIR)/bootstrap" ./functions/$(shell echo $(@:build-%Function=%) | tr '[:upper:]' '[:lower:]')

# What fails fast stands first, with the model beside it, which leaves a processor idle when it is alone. Beside the Go tests stand the
# stack, the emulators and the browser, which wait much, so that two processors have something to do until the end.
test: ## what a change must pass: linters, pages, Go tests, race detector, emulators, a stack; the same verdict on any day
	@MAKE="$(MAKE)" .ci/steps "architecture lint | generated promises docs | test-model" "test-go | test-aws test-emulators test-race | test-console"

# Seeds are drawn, and nothing is trimmed. BELFRY_SEED repeats what an earlier run drew.
test-deep: ## what looks further, before a release and each night: drawn seeds, whole volumes, all emulators; as long as it takes
	@export BELFRY_SEED=$${BELFRY_SEED:-$$(date +%s)}; echo "BELFRY_SEED=$$BELFRY_SEED make test-deep"; \
	MAKE="$(MAKE)" .ci/steps "architecture generated lint promises docs test-model" "deep-go" \
		"test-api test-clients test-fuzz test-release deep-race | deep-aws test-template deep-emulators | deep-console"

# -short trims volumes, as fewer random histories, kills and zones; make test-deep does not. What one target has tested by these flags another finds cached, so all have
# the same. Six tests of a package at once, since they wait more than they work: cmd/belfry by itself takes 144 s that way on two processors, and 213 s with two at once, for
# the same 80 s of the processor.
SHORT := -short
TESTED = $(GO) test $(SHORT) -vet=off -parallel 6 -timeout $(HANGS)
HANGS := 30m

# What is listed with what it exports is compiled, and not linked.
.PHONY: architecture
architecture: ## where code may lie and what it may know; patches of planted bugs apply and have their records
	$(GO) list -export ./... > /dev/null
	$(TESTED) ./tests/architecture
	$(TESTED) ./tests/mutants -run 'Patch|Rule|EveryMutant'

# Some of what make test holds, in some minutes: for each save, not for landing.
.PHONY: check
check: ## for the inner loop: architecture, generated pages, lint, and tests of what differs from main and of what imports it
	@MAKE="$(MAKE)" .ci/steps "architecture generated lint" "check-go"

.PHONY: check-go
check-go:
	@mkdir -p .ci/cache && GO="$(GO)" .ci/changed > .ci/cache/changed
	@if [ -s .ci/cache/changed ]; then xargs $(TESTED) < .ci/cache/changed; else echo "no Go test has to do with what changed"; fi

# What vet finds lint finds. What takes longest is named first, so that nothing else waits for it at the end; three packages at once.
LONGEST := ./cmd/belfry ./tests/protocol ./tests/chaos ./tests/power ./lib/bench ./lib/store/pebble
test-go: ## every Go test but those of emulators; needs nothing but Go
	$(TESTED) -p 3 $(LONGEST) ./...
	cd tests/bench/peers && $(GO) test $(SHORT) -timeout 30m ./...

# The detector costs five to ten times, and its runtime ends a process that has made too many steps. What damages the files of a store that nobody else uses,
# and what lives through hours or days of a clock alone, shows it nothing that the others do not; test-go has those.
UNRACED := Fault49_|FolderIsBounded|AnHourIsAddedUpInParts|AnHourOfManyLongNames|TheStepsOfAWorkflowGoWithItsRun|AJobForAllThatIsNotThere
# Of these it can see the whole, so make test-deep has them under it: hours of a clock too, and more rows of a test whose others share the same memory.
DEEPRACED := StoreIsAwayForHours|AStoreThatIsAwayForHours|AReaderNeverCostsALease/(Done|Refused|Unknown)|ServerAwayAgainWhileFiresAreMadeUpFor|TimersGoWhenTheyAreReadAndNotBefore
DEEPRACED := $(DEEPRACED)|AnHourIsAddedUp|CountsHoldUpNoFire|Fault50_ACrash|IsLetInBehindAnyNumberThatAreTooLate/1300|AShardReadsItsOwnCountsAlone|ALongMinuteIsSweptInParts/(alone|dies)|WhatComesLateIsFound/(one|pages|cut_before_the_last_page_of_three)
test-race: ## packages that share memory, under the race detector
	@if command -v "$$($(GO) env CC)" >/dev/null || .ci/system gcc libc6-dev; \
	then set -x; CGO_ENABLED=1 $(GO) test -race -short -vet=off -timeout $(HANGS) -skip '$(UNRACED)$(addprefix |,$(DEEPRACED))' $(RACED); \
	else .ci/absent "a C compiler (make test-race)"; fi

# spin is in Debian and Homebrew. -short takes out each rule, and leaves the widest bounds to make model.
test-model: ## the model of the protocol, by spin
	@if { command -v spin && command -v gcc; } >/dev/null || .ci/system spin gcc libc6-dev; \
	then set -x; $(TESTED) $(MODELFLAGS) ./tests/model; \
	else .ci/absent "spin (make test-model)"; fi

.PHONY: deep-go deep-race deep-emulators deep-aws deep-console test-deep
deep-go deep-race: HANGS := 3h
deep-go: SHORT :=
deep-race: RACED := ./lib/...
deep-race: DEEPRACED :=
deep-emulators: DEEP := 1
deep-aws: export DEEP := 1
deep-emulators: EMULATED += tests/cost lib/blob/gs lib/blob/azure lib/target/awstarget lib/lambda/work tests/processes tests/adapters tests/engines
deep-go: test-go
deep-race: test-race
deep-emulators: test-emulators
deep-aws: test-aws
deep-console: export DEEP := 1
deep-console: test-console

model: SHORT :=
model: MODELFLAGS = -v -count=1
model: test-model ## all of it, telling what was explored

# What is committed is what Go makes of lib/console/web, so that a clone needs nothing else for make run.
.PHONY: console console-dist
console: ## bundle the pages of the console, lib/console/web, into lib/console/dist; needs only Go
	cd .ci/console && $(GO) run .

console-dist:
	cd .ci/console && $(GO) test -count=1 ./...

# Times and IDs in them differ each time, so they are made when the pages have changed, and not compared.
.PHONY: console-screens
console-screens: build ## take the pictures of the console in docs/screens
	@if { command -v chromium || .ci/system chromium; } >/dev/null && .ci/node; \
	then node lib/console/web/test/screens.mjs; else .ci/absent "Node and Chromium (make console-screens)"; fi

# Types and linters of the pages, and journeys through them in a real browser, against the real binary. The browser without windows takes a quarter less of the
# processor; make test-deep has the whole one, and so has a system that knows no other.
BROWSER := chromium-headless-shell
deep-console: BROWSER := chromium

.PHONY: test-console
test-console: build ## the console: types, linters, and journeys in Chromium
	@if { command -v $(BROWSER) || .ci/system $(BROWSER) || command -v chromium || .ci/system chromium; } >/dev/null && .ci/node; \
	then set -ex; export CHROMIUM=$$(command -v $(BROWSER) || command -v chromium); cd lib/console/web && ./test/run; \
	else .ci/absent "Node and Chromium (make test-console)"; fi

test-api: build ## the running API against its own OpenAPI document, by schemathesis
	@if .ci/python; then sh tests/api/run.sh; else .ci/absent "schemathesis (make test-api)"; fi

test-clients: build ## clients that are generated from the OpenAPI document: they compile, and work against the running API
	@if .ci/clients; then sh tests/clients/run.sh; else .ci/absent "the generators of clients (make test-clients)"; fi

# Linux only: systemd judges the unit, and an empty root stands in for the container image.
test-release: ## what people download: archives, systemd unit, container image
	@if [ "$$(uname)" = Linux ] && { command -v systemd-analyze >/dev/null || .ci/system systemd; }; \
	then set -x; cd .ci/release && $(GO) test -count=1 -timeout 60m ./...; \
	else .ci/absent "systemd-analyze on Linux (make test-release)"; fi

# Linux only: not all emulators can be kept to loopback, so they run in a network namespace, which has but a loopback.
test-emulators: ## the adapters of clouds against emulators of DynamoDB, SQS, S3 and so on, without Docker
	@if [ "$$(uname)" = Linux ] && localstack/test --able && GO="$(GO)" DEEP="$(DEEP)" localstack/test --install $(EMULATED); \
	then set -x; GO="$(GO)" DEEP="$(DEEP)" TESTFLAGS="$(TESTFLAGS)" localstack/test $(EMULATED); \
	else .ci/absent "the emulators on Linux (make test-emulators)"; fi

# With DEEP=1 a browser is among those who use it.
test-aws: ## the template with its functions, deployed into MiniStack and used from outside
	@if [ "$$(uname)" = Linux ] && localstack/test --able && localstack/ministack install && .ci/sam && \
	{ [ -z "$$DEEP" ] || { { command -v chromium || .ci/system chromium; } >/dev/null && .ci/node; }; }; \
	then GO="$(GO)" TESTFLAGS="$(TESTFLAGS)" localstack/e2e ministack; \
	else .ci/absent "MiniStack on Linux, with DEEP=1 Node and Chromium too (make test-aws)"; fi

test-template: ## the template by SAM's linters, and two stacks of it in a MiniStack that enforces rights
	@if [ "$$(uname)" = Linux ] && localstack/test --able && localstack/ministack install && .ci/sam; \
	then GO="$(GO)" TESTFLAGS="$(TESTFLAGS)" tests/template/run; \
	else .ci/absent "SAM and MiniStack on Linux (make test-template)"; fi

test-localstack: ## the same on LocalStack, with functions as processes; needs Python 3.13, and root for its network namespace
	GO="$(GO)" TESTFLAGS="$(TESTFLAGS)" localstack/e2e localstack

emulators: ## DynamoDB Local, ElasticMQ and MiniStack on the loopback of this machine, until Ctrl-C
	@localstack/emulators

lint: $(LINTER) lint-rules lint-scripts ## architecture, mistakes and format, by the rules in .golangci.yml
	$(LINTER) run --allow-parallel-runners ./...

lint-rules: $(LINTER)
	cd .ci/tools && $(GO) test -count=1 ./...

lint-scripts:
	@if .ci/python; then .ci/scripts; else .ci/absent "shellcheck (make lint-scripts)"; fi

promises: ## every promise and fault with the tests that hold it
	@$(GO) run ./tests/promises

bench: ## all benchmarks; BENCHTIME=1s each
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

bench-lateness: build ## start, idle cost and lateness of `belfry dev`, from outside; two minutes
	$(GO) run ./tests/bench/lateness -belfry bin/belfry

# Built, not run by go run, which keeps a signal to itself.
.PHONY: bench-peers
bench-peers: build ## Belfry beside River on PostgreSQL and Asynq on Redis, here and now; PEERS_FLAGS="-jobs 1000000 -rounds 5"
	@{ command -v redis-server && { command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; }; } >/dev/null 2>&1 || .ci/system postgresql redis-server
	cd tests/bench/peers && $(GO) build -o ../../../bin/bench-peers .
	bin/bench-peers -belfry bin/belfry -file bin/bench-peers.json $(PEERS_FLAGS)

bench-aws: ## nominal time to target under the tick of each minute, on MiniStack: 500 runs over two minutes
	GO="$(GO)" TESTFLAGS="-test.run ^$$ -test.bench Lateness -test.benchtime 1x" localstack/e2e ministack

bench-coldstart: ## start and first event of each function, beside engines on this host; Linux
	for f in api tick worker deadletter; do CGO_ENABLED=0 $(GO) build $(FUNCTION_FLAGS) -o bin/functions/$$f ./functions/$$f || exit; done
	GO="$(GO)" localstack/test --install tests/bench/coldstart
	GO="$(GO)" BELFRY_FUNCTIONS="$(CURDIR)/bin/functions" TESTFLAGS=-test.v localstack/test tests/bench/coldstart

fuzz: ## all fuzz targets, one by one; FUZZTIME=30s each, ONLY=lib/api those that match
	@GO="$(GO)" FUZZTIME="$(FUZZTIME)" ONLY="$(ONLY)" .ci/fuzz

test-fuzz: ## all fuzz targets for two seconds each
	@GO="$(GO)" FUZZTIME=2s .ci/fuzz

cost: ## count what runs and an idle month cost on AWS, print it, and write the tables of docs/cost.md
	@cd tests/cost && $(GO) test -count=1 -run '$(OF_COSTS)' -args -update -show

# A fifth of the kills go to processes on shared engines, where their emulators can be had.
chaos: ## kill the real binary under load, at random moments and at named points; KILLS=1000 times
	BELFRY_KILLS=$(KILLS) $(GO) test -count=1 -timeout 4h -v ./tests/chaos
	@if [ "$$(uname)" = Linux ] && localstack/test --able && GO="$(GO)" localstack/test --install tests/processes; \
	then set -x; BELFRY_KILLS=$(KILLS) GO="$(GO)" TESTFLAGS="-test.v -test.timeout 4h -test.run chaos_on_shared" localstack/test tests/processes; \
	else .ci/absent "the emulators on Linux (make chaos)"; fi

mutants: ## plant bugs and tell what finds each; half an hour; MUTANTS="words of names", SEEDS=12
	$(GO) run ./tests/mutants $(if $(SEEDS),-seeds $(SEEDS)) $(MUTANTS)

mutants-update: ## the same, and keep what was found in tests/mutants/killers.json and docs/mutants.md
	$(GO) run ./tests/mutants -update $(if $(SEEDS),-seeds $(SEEDS)) $(MUTANTS)

.PHONY: sim
sim: ## simulate hours of Belfry under faults, for SIMTIME=30m; STEPS=17m only where clocks step so far; SEED=7 shows each step of one world, WITHOUT=lost,host1 less of it
	@if [ -n "$(SEED)" ]; \
	then $(GO) test ./tests/sim -count=1 -timeout 0 -run '^TestReplay$$' -v -args -trace -seed "$(SEED)" -without "$(WITHOUT)"; \
	else $(GO) test ./tests/sim -count=1 -timeout 0 -run '^TestSim$$' -v -args -for "$(SIMTIME)" -seeds "$(or $(SEEDS),0)" -from "$(or $(FROM),0)" -steps "$(or $(STEPS),0)"; fi

release: ## build what people download, for Linux and macOS, into dist; VERSION=v1.2.3
	cd .ci/release && $(GO) run . -version "$(VERSION)" -out "$(CURDIR)/dist"

man: build ## manual pages of all commands, into bin/man
	bin/belfry man --dir bin/man

# Strict: a link or an anchor that leads nowhere, or a page that no menu has, ends it.
docs: build ## the pages of docs/ as a site, into bin/docs; it loads nothing from elsewhere
	@if .ci/python; then set -ex; \
	NO_MKDOCS_2_WARNING=1 .ci/venv/bin/mkdocs build --strict --quiet -f .ci/site/mkdocs.yml; \
	else .ci/absent "mkdocs (make docs)"; fi

docs-screens: build
	@if .ci/python; then set -x; .ci/venv/bin/python .ci/site/screens.py; else .ci/absent "Rich (make docs-screens)"; fi

# What is made from the code: each is a test that compares, and writes instead under -update.
OF_COMMANDS := TestTheReferenceIsTheCode|TestTheConfigurationPageIsTheCode|TestEveryExitCodeIsDocumented|TestThePictureOfThePlanPage|TestTheWorkflowsOfThePage
OF_THE_API  := TestTheReferenceIsTheDocument|TestTheConsoleHasTheLimits|TestTheConsoleCounts
OF_ROUTES   := TestTheRoutesAreTheDocument
OF_COSTS    := TestTheCostPageIsWhatIsCounted|TestTheUnitsOfPlansAreWhatIsCounted

.PHONY: generate generated
generate: console docs-reference template-routes docs-screens ## write all that is made from the code: pages, routes, screens, tables of costs
	cd tests/cost && $(GO) test -count=1 -run '$(OF_COSTS)' -args -update

# What counts the costs test-go finds cached then.
generated: build console-dist ## tell what of it is stale
	$(GO) test -vet=off -run '$(OF_COMMANDS)|$(OF_THE_API)|$(OF_ROUTES)' ./cmd/belfry ./lib/api ./tests/template
	$(TESTED) ./tests/cost
	@if .ci/python; then set -x; .ci/venv/bin/python -B .ci/site/screens_test.py && .ci/venv/bin/python .ci/site/screens.py --check; else .ci/absent "Rich (make generated)"; fi

docs-reference:
	$(GO) test ./cmd/belfry -run '$(OF_COMMANDS)' -count=1 -args -update
	$(GO) test ./lib/api -run '$(OF_THE_API)' -count=1 -args -update

template-routes:
	$(GO) test ./tests/template -run '$(OF_ROUTES)' -count=1 -args -update

release-store: ## keep a store and a backup of this release for the tests of later ones; RELEASE=v0.1.0
	$(GO) test ./tests/upgrade -count=1 -run '^TestMake$$' -args -release "$(RELEASE)"

tools: $(LINTER) venv ## build and install what make test needs beyond Go

venv: ## the Python tools of make test, which .ci/venv leads to
	@.ci/python || .ci/absent "the Python tools (make venv)"

$(LINTER): .ci/tools/go.mod .ci/tools/go.sum
	@.ci/linter $@

.PHONY: clean-tools
clean-tools: ## remove the tools that all clones on this machine share
	rm -rf "$${XDG_CACHE_HOME:-$$HOME/.cache}/belfry"

clean: ## remove what building and testing left; data under .belfry stays
	rm -rf bin dist .ci/cache .ci/venv .ci/tools/bin
