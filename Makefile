# cairn is built, tried and tested from here. Only Go, a C compiler, make and git
# are needed; what else a target wants it gets itself or says how to get.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
TAGS    := sqlite_fts5,sqlite_math_functions
STATIC  := $(if $(filter Linux,$(shell uname -s)),-linkmode external -extldflags "-static")
RELEASE := $(TAGS),sqlite_omit_load_extension,netgo,osusergo

# The race detector watches cairn, not the SQLite that is C turned into Go: there it finds
# nothing that is cairn's and makes every statement thirty times as slow.
RACE    := -race -gcflags=github.com/ncruces/...=-race=false -gcflags=lukechampine.com/...=-race=false

export CGO_ENABLED ?= 1
# Nobody asks SQLite how much memory it has; counting it takes a lock for every allocation.
export CGO_CFLAGS ?= -O2 -g -DSQLITE_DEFAULT_MEMSTATUS=0

.DEFAULT_GOAL := help
.PHONY: help build man demo test check browser agents bench pictures soak conformance lint clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## static programs with the fast driver: bin/cairn and, for hooks, bin/cairn-hook
	go build -tags $(RELEASE) -trimpath -ldflags '-s -w -X main.version=$(VERSION) $(STATIC)' -o bin/ ./cmd/cairn ./cmd/cairn-hook

man: ## a man page for every command, in bin/man: MANPATH=bin/man: man cairn-recall
	go run -C bench -tags $(TAGS) ./man $(CURDIR)/bin/man/man1

demo: build ## the main job on invented sessions (ARGS=--mine: on a copy of your own, ARGS=--pages: then in the browser)
	@go run -C bench ./demo --cairn $(CURDIR)/bin/cairn $(ARGS)

# The second pass covers what differs between the two SQLite drivers: the rooms that meet the
# driver itself, and in cmd/cairn scripts, kills, locks, damage and encryption. It is -short:
# there tests that kill, salvage and try at random repeat less of what the first has done.
# The rooms whose limits of memory cannot be measured under the race detector run in full. A
# machine may be slow: go test's own limit of ten minutes for a room is too short for it.
# make soak goes further, make lint vets.
DRIVER  := ^Test.*(Script|Kill|Salvage|Encrypt|Lock|Disk|ReadOnly|Damage|Flipped|Writers|Servers|Schema|Migrat)

test: ## everything with the race detector, then what differs with the other SQLite driver
	go test -vet=off -timeout 30m $(RACE) -tags $(TAGS) ./...
	CGO_ENABLED=0 go test -vet=off -timeout 30m -short ./internal/store/... ./internal/observation/... ./internal/record/... ./internal/hub/...
	CGO_ENABLED=0 go test -vet=off -timeout 30m -short -run '$(DRIVER)' ./cmd/cairn
	CGO_ENABLED=0 go test -vet=off -timeout 30m ./internal/harness/...
	cd internal/redact/oracle && go test -timeout 30m ./...
	cd agents && go test ./...
	cd bench && go test -vet=off -timeout 30m -tags $(TAGS) ./...

check: ## formatting, vet and the tests of what has changed, in a minute (BASE=main: since main)
	@TAGS=$(TAGS) .ci/check

# Not a part of test: Chromium is 300 MB, and a minute goes by.
browser: ## the pages in Chromium, with hostile mail (where there is none, installs it on Debian as root)
	@./internal/web/browser/install.sh
	cd internal/web/browser && go vet ./... && go test -count=1 -v ./...

# Not a part of test: the programs are 870 MB, and ten minutes go by. ONLY=codex,gemini chooses
# programs, BASE=/path/to/cairn checks another binary beside, JSON=file writes the results there,
# too, RECORD=1 refreshes what make test replays.
agents: build ## real agent programs with a scripted model, connected by cairn init (needs npm)
	cd agents && go run . -cairn $(CURDIR)/bin/cairn $(if $(ONLY),-only $(ONLY)) $(if $(BASE),-base $(abspath $(BASE))) $(if $(JSON),-json $(abspath $(JSON))) $(if $(RECORD),-record) $(ARGS)

bench: build ## the figures of the contract, beside limits measured in the same run
	CGO_CFLAGS="$(CGO_CFLAGS) -DSQLITE_ENABLE_DBSTAT_VTAB" go run -C bench -tags $(TAGS) . --cairn $(CURDIR)/bin/cairn $(ARGS)

pictures: build ## docs/pictures, from the demo (needs Chromium, curl and jq)
	bench/demo/pictures.sh bin/cairn

soak: build ## longer: kills, load, fuzzing
	./bench/soak.sh

conformance: ## the official MCP suite against a test build (needs npm)
	./bench/conformance/run.sh

lint: ## formatting, vet and staticcheck
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these"; exit 1; }
	go vet -tags $(TAGS) ./...
	go vet -tags $(TAGS),testhooks ./...
	cd agents && go vet ./... && go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	cd bench && go vet -tags $(TAGS) ./... && go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -tags $(TAGS) ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -tags $(TAGS) ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -tags $(TAGS),testhooks ./...

clean: ## remove what was built
	rm -rf bin dist
