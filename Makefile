# Needs Go, git and make on Linux, and nothing else: what is not Go is not used, and every tool is pinned in hack/tools.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# The tools have a module of their own: their hundreds of dependencies stay out of the product's go.mod.
TOOL := go tool -modfile=hack/tools/go.mod
CONTROLLER_GEN := $(TOOL) controller-gen
GOLANGCI_LINT := $(TOOL) golangci-lint

# The API versions alone: below them lies what is generated from them.
comma := ,
API_PATHS = $(patsubst %,paths=./%,$(wildcard api/v*))

# What the tests, fuzz targets and benchmarks work on.
PACKAGES ?= ./...
TEST_FLAGS ?=
FUZZTIME ?= 30s
BENCHTIME ?= 1s
# The race detector needs a C compiler and its headers; without one the tests run all the same. `make test RACE=` leaves
# it out.
RACE ?= $(shell $$(go env CC) -include stdlib.h -x c -E /dev/null >/dev/null 2>&1 && echo -race)

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

.PHONY: clean
clean: ## Remove what was built, except bin/kube, which takes minutes to build.
	find bin -mindepth 1 -maxdepth 1 -not -name kube -exec rm -rf {} +

##@ Generate

.PHONY: generate
generate: ## Generate deep copies and apply configurations from api/.
	$(CONTROLLER_GEN) object applyconfiguration $(API_PATHS)

# A role is the sum of the +kubebuilder:rbac markers in some packages: each package says what it takes to run it.
# Arguments: name of the ClusterRole, file in config/rbac, folders.
role = $(if $(wildcard $(addsuffix /*.go,$(3))),$(CONTROLLER_GEN) rbac:roleName=$(1)$(comma)fileName=$(2) \
	$(patsubst %,paths=./%,$(3)) output:rbac:dir=config/rbac)

# What every server takes, and what one takes that keeps requests as objects.
SERVER := internal/settings internal/lease controllers/redelivery

.PHONY: manifests
manifests: ## Generate the CRDs and the roles in config/.
	$(CONTROLLER_GEN) crd $(API_PATHS) output:crd:dir=config/crd/bases
	$(call role,phoneproof-operator,role.yaml,controllers/project)
	$(call role,phoneproof-server-kubernetes,server_kubernetes_role.yaml,$(SERVER) internal/store/kubernetes)
	$(call role,phoneproof-server-postgresql,server_postgresql_role.yaml,$(SERVER))

.PHONY: docs
docs: ## Generate the API reference, docs/reference/api.md.
	mkdir -p docs/reference
	$(TOOL) crd-ref-docs --source-path=api --config=hack/crd-ref-docs.yaml --renderer=markdown \
		--output-path=docs/reference/api.md --log-level=ERROR

##@ Check

.PHONY: fmt
fmt: ## Format the Go code and sort its imports.
	$(GOLANGCI_LINT) fmt

.PHONY: vet
vet: ## Run go vet.
	go vet ./...

.PHONY: lint
lint: ## Run golangci-lint.
	$(GOLANGCI_LINT) run

.PHONY: lint-fix
lint-fix: ## Run golangci-lint and mend what it can.
	$(GOLANGCI_LINT) run --fix

.PHONY: verify
verify: ## Run every check but the tests, and regenerate: what comes out must be what is committed.
	hack/verify.sh

##@ Test

.PHONY: envtest-assets
envtest-assets: ## Build the Kubernetes for the tests into bin/kube, once (5 minutes on 2 cores).
	@hack/envtest-assets.sh

bin/testcount: $(wildcard hack/testcount/*.go)
	@CGO_ENABLED=0 go build -buildvcs=false -o $@ ./hack/testcount

.PHONY: test
test: envtest-assets bin/testcount ## Run all tests, against a real API server where they need one (PACKAGES, TEST_FLAGS, RACE).
	go test -json -shuffle=on $(RACE) $(TEST_FLAGS) $(PACKAGES) | bin/testcount

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (30s).
	FUZZTIME=$(FUZZTIME) hack/fuzz.sh

.PHONY: bench
bench: ## Run the Go benchmarks for BENCHTIME (1s) each.
	go test -run='^$$' -bench=. -benchmem -benchtime=$(BENCHTIME) $(PACKAGES)

##@ Build

.PHONY: build
build: ## Build the static binary for GOOS and GOARCH; for this machine it is also bin/phoneproof.
	CGO_ENABLED=0 GOOS=$(GOOS) GOARCH=$(GOARCH) go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' \
		-o bin/phoneproof-$(GOOS)-$(GOARCH) ./cmd/phoneproof
	@[[ $(GOOS)/$(GOARCH) != "$$(go env GOHOSTOS)/$$(go env GOHOSTARCH)" ]] || ln -sf phoneproof-$(GOOS)-$(GOARCH) bin/phoneproof
