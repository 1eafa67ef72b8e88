# cairn is built, tried and tested from here. Only Go, a C compiler, make and git
# are needed; what else a target wants it gets itself or says how to get.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
TAGS    := sqlite_fts5,sqlite_math_functions
STATIC  := $(if $(filter Linux,$(shell uname -s)),-linkmode external -extldflags "-static")
RELEASE := $(TAGS),sqlite_omit_load_extension,netgo,osusergo

export CGO_ENABLED ?= 1

.PHONY: build demo test bench soak conformance lint clean

build: ## one static binary with the fast driver: bin/cairn
	go build -tags $(RELEASE) -trimpath -ldflags '-s -w -X main.version=$(VERSION) $(STATIC)' -o bin/cairn ./cmd/cairn

demo: build ## the main job on invented sessions (ARGS=--mine: on a copy of your own)
	@go run ./cmd/cairn-demo --cairn bin/cairn $(ARGS)

test: ## everything with the race detector, then the rooms over SQLite with the other driver
	go test -race -tags $(TAGS) ./...
	CGO_ENABLED=0 go test . ./internal/store/... ./internal/project/... ./internal/observation/... ./internal/record/... ./internal/harness/... ./cmd/cairn/...
	cd internal/redact/oracle && go test ./...

bench: build ## the figures of the contract, beside limits measured in the same run
	go run -tags $(TAGS) ./cmd/cairn-bench --cairn bin/cairn $(ARGS)

soak: build ## longer: kills, load, fuzzing
	./cmd/cairn-bench/soak.sh

conformance: ## the official MCP suite against a test build (needs npm)
	./cmd/cairn-conformance/run.sh

lint: ## formatting, vet and staticcheck
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these"; exit 1; }
	go vet -tags $(TAGS) ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -tags $(TAGS) ./...

clean:
	rm -rf bin dist
