# Needs Go, git and make on Linux, and a C compiler for the race detector: what is not Go is not used, and every tool is pinned in a module
# below hack/tools.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# A third of the binary is what client-go registers at its start: every kind of Kubernetes with generated code, of which next
# to nothing ever runs. Nothing is inlined into it: 1.7 MB less. Everything is compiled with the same flags, so that product, tests,
# tools and Kubernetes compile each package once, wherever the checkout is.
export GOFLAGS := -trimpath -gcflags=k8s.io/api/...=-l $(GOFLAGS)
export CGO_ENABLED ?= 0

# The tools have modules of their own, one for each purpose: their hundreds of dependencies stay out of the product's go.mod.
TOOL := go tool -modfile=hack/tools/go.mod
# Before a command and its name: no command is silent for longer than 8 s. The first one shows what the command prints, the second one only
# if it fails.
CLOCK := @source hack/lib.sh; with_clock
PROGRESS := @source hack/lib.sh; with_progress
CONTROLLER_GEN := $(TOOL) controller-gen
GOLANGCI_LINT := $(TOOL) golangci-lint

# The API versions alone: below them lies what is generated from them.
comma := ,
API_PATHS = $(patsubst %,paths=./%,$(wildcard api/v*))

# What the tests, fuzz targets and benchmarks work on.
PACKAGES ?= ./...
# Flags of go test; with -run or -bench the specs of test/integration are left out.
TEST_FLAGS ?=
# For one package: a machine may be slow.
TEST_TIMEOUT ?= 60m
# How many specs of test/integration run at once; empty for two for each processor.
PROCS ?=
FUZZTIME ?= 30s
BENCHTIME ?= 1s
# Which figures, by the beginnings of their names with commas between (all), how often each side, and how long each time.
FIGURES ?=
ROUNDS ?= 6
SECONDS ?= 5
GOOS := $(shell go env GOOS)
GOARCH := $(shell go env GOARCH)

# From the commit alone, so that the same commit gives the same binary, everywhere and always.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT = $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
DATE = $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
VERSION_PACKAGE := github.com/phoneproof/phoneproof/internal/version
LDFLAGS = -s -w -X $(VERSION_PACKAGE).version=$(VERSION) -X $(VERSION_PACKAGE).commit=$(COMMIT) -X $(VERSION_PACKAGE).date=$(DATE)

##@ General

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Verify numbers in this terminal, with simulated messengers and no cluster: each call as a line of curl, each answer, each webhook.
	@hack/quickdemo.sh

.PHONY: clean
clean: ## Remove what was built, except the links in bin/kube.
	find bin -mindepth 1 -maxdepth 1 -not -name kube -exec rm -rf {} +

##@ Generate

.PHONY: generate
generate: ## Generate deep copies from api/.
	$(PROGRESS) 'generating code' $(CONTROLLER_GEN) object $(API_PATHS)

# The chart holds the only copy: Flux leaves symbolic links out of what it takes from Git, and Kustomize refers to folders anywhere.
CHART_FILES := charts/phoneproof/files

# A role is the sum of the +kubebuilder:rbac markers in some packages: each package says what it takes to run it.
# Arguments: name of the ClusterRole, file in $(CHART_FILES)/rbac, folders.
role = $(if $(wildcard $(addsuffix /*.go,$(3))),$(PROGRESS) 'generating $(2)' $(CONTROLLER_GEN) rbac:roleName=$(1)$(comma)fileName=$(2) \
	$(patsubst %,paths=./%,$(3)) output:rbac:dir=$(CHART_FILES)/rbac)

# What every server takes, and what one takes that keeps requests as objects.
SERVER := internal/server internal/leader controllers/request controllers/projectstatus controllers/callback

.PHONY: manifests
manifests: ## Generate the CRDs and the roles in the chart, to which config/ refers.
	$(PROGRESS) 'generating CRDs' $(CONTROLLER_GEN) crd $(API_PATHS) output:crd:dir=$(CHART_FILES)/crds
	for crd in $(CHART_FILES)/crds/phoneproof.dev_*.yaml; do awk -f hack/crd.awk $$crd >$$crd.new && mv $$crd.new $$crd; done
	$(call role,phoneproof-operator,role.yaml,controllers/project)
	$(call role,phoneproof-server-kubernetes,server_kubernetes_role.yaml,$(SERVER) internal/store/kubernetes)
	$(call role,phoneproof-server-postgresql,server_postgresql_role.yaml,$(SERVER))

.PHONY: docs
docs: reference samples ## Generate what the pages take from the code and from a run.

.PHONY: docs-site
docs-site: ## Build docs/ as a website into bin/site/dist, and check links and pages (npm; ALL=1: each page in a browser).
	@hack/site.sh

.PHONY: samples
samples: envtest-assets ## Run the commands of README.md, and replace the sample answers that have become wrong.
	$(CLOCK) samples go test -count=1 -run='^TestBlocks$$/^README.md$$' ./test/docs -update

.PHONY: reference
reference: api-reference ## Generate the API reference, the chart's README.md, and the tables of docs/ that follow from the code.
	$(PROGRESS) 'generating tables' go test -count=1 ./test/reference -update
	$(PROGRESS) 'generating the README of the chart' $(TOOL) helm-docs --chart-search-root=charts --sort-values-order=file --log-level=error

.PHONY: api-reference
api-reference: ## Generate the list of all fields that a release has, bin/api-reference.md.
	@mkdir -p bin
	$(PROGRESS) 'generating bin/api-reference.md' $(TOOL) crd-ref-docs --source-path=api --config=hack/crd-ref-docs.yaml --renderer=markdown \
		--output-path=bin/api-reference.md --log-level=ERROR

##@ Check

.PHONY: fmt
fmt: ## Format the Go code and sort its imports.
	$(CLOCK) 'golangci-lint fmt' $(GOLANGCI_LINT) fmt

.PHONY: vet
vet: ## Run go vet.
	$(CLOCK) 'go vet' go vet ./...

.PHONY: lint
lint: ## Run golangci-lint.
	$(CLOCK) golangci-lint $(GOLANGCI_LINT) run

.PHONY: lint-fix
lint-fix: ## Run golangci-lint and fix what it can.
	$(CLOCK) golangci-lint $(GOLANGCI_LINT) run --fix

.PHONY: verify
verify: ## Run every check but the tests; generated files must be up to date.
	hack/verify.sh

.PHONY: verify-clients
verify-clients: ## Generate clients with the tools of docs/clients.md, and let each call a running dev (npm ones need Node).
	@hack/verify-clients.sh

.PHONY: sdk
sdk: ## Pack the client libraries, install them in empty folders, and play the scenarios of test/sdk and their mutants (Node, Python).
	@hack/sdk.sh

# Helm 3 is tested too, because many still install with it; the end-to-end tests want it as a file.
bin/helm3: hack/tools/helm/go.mod
	$(CLOCK) 'building Helm 3' go build -modfile=hack/tools/helm/go.mod -o $@ helm.sh/helm/v3/cmd/helm

.PHONY: chart
chart: ## Check the chart: lint with Helm 3 and 4, unit tests, schemas.
	hack/chart.sh

##@ Test

.PHONY: envtest-assets
envtest-assets: ## Download the Kubernetes for the tests, or build it (5 minutes on 2 cores), once (KUBE=download, KUBE=source, ENVTEST_INDEX).
	@hack/envtest-assets.sh

.PHONY: postgres-assets
postgres-assets: ## Install Debian's PostgreSQL and PgBouncer for the tests, where they are missing and that can be done (root).
	@hack/postgres-assets.sh

.PHONY: screenshot
screenshot: browser-assets ## Take the pictures of README.md and docs/page.md.
	@mkdir -p bin docs/images/page
	$(CLOCK) pictures env PHONEPROOF_TEST_PAGE_PICTURES=$(CURDIR)/docs/images/page go test -count=1 -run TestUserPage_everyState ./cmd/phoneproof/app
	@rm -f bin/dev-page.png
	$(CLOCK) picture env PHONEPROOF_TEST_README_PICTURE=$(CURDIR)/bin/dev-page.png go test -count=1 -run TestDev_pagePlaysTheWholeFlow ./cmd/phoneproof/app
	@mv bin/dev-page.png docs/images/ || { echo 'no picture was taken: the test was skipped, see go test -v' >&2; exit 1; }

.PHONY: browser-assets
browser-assets: ## Install Debian's Chromium (root) and axe-core (npm) for the tests, where they are missing and that can be done.
	@hack/browser-assets.sh

.PHONY: example-assets
example-assets: ## Install Debian's Node and Python for the tests of the examples in docs/, where they are missing and that can be done (root).
	@hack/example-assets.sh

.PHONY: test-packages
test-packages: postgres-assets browser-assets example-assets

test test-race test-slow: export PACKAGES := $(PACKAGES)
test test-race test-slow: export TEST_FLAGS := $(TEST_FLAGS)
test test-race test-slow: export TEST_TIMEOUT := $(TEST_TIMEOUT)
test test-race test-slow: export PROCS := $(PROCS)
test: export AFTER_RACE := $(AFTER_RACE)

# The tests are vetted by make verify.
.PHONY: test
test: test-packages envtest-assets ## Run the tests, against a real API server where they need one (PACKAGES, TEST_FLAGS, PROCS, PHONEPROOF_TEST_HELM=1).
	@hack/test.sh

.PHONY: test-race
test-race: test-packages ## Run the product's packages that need no API server with the race detector, which takes a C compiler (PACKAGES, TEST_FLAGS).
	@hack/test.sh race

.PHONY: test-slow
test-slow: test-packages envtest-assets ## Run with the race detector what test-race leaves out, and the topics of the store contract that make test leaves out in PgBouncer's query mode (PACKAGES, TEST_FLAGS).
	@hack/test.sh slow

.PHONY: e2e-programs
e2e-programs: bin/helm3 ## Compile what make e2e takes, as it does by itself otherwise.
	@hack/cluster.sh programs
	@$(MAKE) --no-print-directory build GOOS=linux
	@hack/upgrade-base.sh build linux/$(GOARCH)

.PHONY: e2e
e2e: ## Run the end-to-end tests on a cluster of running pods, made for them (root; KEEP=1 leaves it).
	@hack/e2e.sh

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (30s). More variables: hack/fuzz.sh.
	FUZZTIME=$(FUZZTIME) hack/fuzz.sh

.PHONY: bench
bench: envtest-assets postgres-assets ## Measure this machine's PhoneProof beside a bare server (FIGURES, ROUNDS, SECONDS), for benchstat in bin/bench.txt; see docs/performance.md.
	$(CLOCK) bench go run ./test/bench -figures=$(FIGURES) -rounds=$(ROUNDS) -seconds=$(SECONDS) -out=bin/bench.txt

.PHONY: microbench
microbench: ## Run the Go benchmarks for BENCHTIME (1s) each.
	$(CLOCK) microbench go test -run='^$$' -bench=. -benchmem -benchtime=$(BENCHTIME) $(PACKAGES)

# Chaos: for how long, or how many verifications, begun at which rate a second at most (0: as the machine can); how many kills
# of single replicas; which stores; and the seed of a run that is to be repeated.
DURATION ?= 3m
REQUESTS ?= 0
RATE ?= 15
KILLS ?= 20
CODEKILLS ?= 260
STORE ?= postgresql,kubernetes
SEED ?= 0
# A standby of the database, synchronous or asynchronous, and how often it is promoted.
STANDBY ?=
FAILOVERS ?= 20

.PHONY: chaos
chaos: envtest-assets postgres-assets ## Run whole systems under load and faults, and judge by ledgers outside of them (DURATION, REQUESTS, RATE, KILLS, CODEKILLS, STORE, SEED, STANDBY, FAILOVERS).
	$(CLOCK) chaos go run ./test/chaos -duration=$(DURATION) -requests=$(REQUESTS) -rate=$(RATE) -kills=$(KILLS) -codekills=$(CODEKILLS) -store=$(STORE) \
		-seed=$(SEED) -standby=$(STANDBY) -failovers=$(FAILOVERS)

# Mutants: a regular expression of their names.
ONLY ?=

.PHONY: mutants
mutants: envtest-assets postgres-assets ## Plant each defect of test/mutants, and fail if a test suite does not notice (ONLY=regexp).
	$(CLOCK) mutants go run ./test/mutants -only='$(ONLY)'

.PHONY: mutants-ci
mutants-ci: ## Plant the cheapest ones only, which need no server.
	$(CLOCK) mutants go run ./test/mutants -ci

# Packages below internal that decide, and start nothing.
PURE ?= tokenbucket texts phone verification webhook messenger

# In a copy of what git knows, as each of its workers copies the whole folder. Results that Go keeps would make it think that tests are fast.
.PHONY: gremlins
gremlins: ## Change each comparison, sign and condition of pure packages (PURE), one at a time, and list what no test of them notices.
	@copy=$$(mktemp -d); trap 'rm -rf "$$copy"' EXIT; changed=$$(git stash create); git archive "$${changed:-HEAD}" | tar -x -C "$$copy"; cd "$$copy"; \
	for package in $(PURE); do \
		GOFLAGS="$$GOFLAGS -count=1" go tool -modfile=hack/tools/gremlins/go.mod gremlins unleash --output-statuses=lct "./internal/$$package"; \
	done

##@ Build

# A program below cmd, and the folder of what is built.
PROGRAM ?= phoneproof
BIN = bin

.PHONY: build
build: ## Build the static binary of PROGRAM (phoneproof) for GOOS and GOARCH into BIN (bin); for this machine it is also BIN/PROGRAM.
	$(CLOCK) 'building $(PROGRAM)' env CGO_ENABLED=0 GOOS=$(GOOS) GOARCH=$(GOARCH) go build -buildvcs=false -ldflags '$(LDFLAGS)' \
		-o $(BIN)/$(PROGRAM)-$(GOOS)-$(GOARCH) ./cmd/$(PROGRAM)
	@[[ $(GOOS)/$(GOARCH) != "$$(go env GOHOSTOS)/$$(go env GOHOSTARCH)" ]] || ln -sf $(PROGRAM)-$(GOOS)-$(GOARCH) $(BIN)/$(PROGRAM)

.PHONY: plugin
plugin: ## Build the kubectl plugin in the same way.
	@$(MAKE) --no-print-directory build PROGRAM=kubectl-phoneproof

# The chart's default tag is its appVersion, which has no v.
IMAGE ?= ghcr.io/phoneproof/phoneproof:$(VERSION:v%=%)
IMAGE_PLATFORMS ?= linux/amd64 linux/arm64

.PHONY: image
image: ## Build the image for IMAGE_PLATFORMS as one OCI archive, bin/image/phoneproof.tar, with the same digest each time.
	@for platform in $(IMAGE_PLATFORMS); do \
		$(MAKE) --no-print-directory build GOOS=$${platform%/*} GOARCH=$${platform#*/}; \
	done
	@hack/image.sh $(IMAGE) bin/image/phoneproof.tar $(VERSION) \
		$$(for platform in $(IMAGE_PLATFORMS); do echo "$$platform=bin/phoneproof-$${platform/\//-}"; done)

##@ Release

# A commit without a tag, to try it out; the SSH key that signs the checksums; and a second build with an empty cache of Go.
UNTAGGED ?=
SIGN_KEY ?=
FRESH ?=

release verify-release: export VERSION := $(VERSION)
release verify-release: export UNTAGGED := $(UNTAGGED)
release: export SIGN_KEY := $(SIGN_KEY)
verify-release: export FRESH := $(FRESH)

.PHONY: release
release: ## Build the release VERSION into bin/release/VERSION, from its tag or with UNTAGGED=1; SIGN_KEY signs it.
	@hack/release.sh

.PHONY: verify-release
verify-release: ## Build the release VERSION twice, from clean clones in two folders, and compare it byte for byte (FRESH=1: without Go's cache).
	@hack/verify-release.sh

##@ Cluster

.PHONY: cluster-up
cluster-up: ## Start a single-node Kubernetes on this machine, or repair it (root; CLUSTER=kind, not tried here, uses Docker instead).
	@hack/cluster.sh up

.PHONY: cluster-image
cluster-image: ## Build the image for this machine and give it to the cluster, under a name that its content decides.
	@$(MAKE) --no-print-directory build GOOS=linux
	@hack/cluster.sh image bin/phoneproof-linux-$(GOARCH) linux/$(GOARCH)

.PHONY: cluster-down
cluster-down: ## End that cluster and remove everything it made.
	@hack/cluster.sh down

.PHONY: demo-cluster
demo-cluster: ## From nothing to two verified numbers, on such a cluster, step by step.
	@hack/demo-cluster.sh
