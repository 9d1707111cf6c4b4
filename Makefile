# Headgate. `make help` lists the targets.
GO         ?= go
BIN        := bin/headgate
ARGS       ?=
PKGS       := ./...

.DEFAULT_GOAL := build
.PHONY: help build run test lint unit bench bench-sim test-bmv2 bench-bmv2 mininet p4 p4-tofino proto clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

build: ## build bin/headgate, one static binary
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN) ./cmd/headgate

run: build ## run the default fabric; ARGS="--for 40s --json out.json"
	$(BIN) run $(ARGS)

test: lint unit ## everything that needs no root; root-only parts run when root

# The race detector needs a C compiler; without one the same tests run without it.
RACE := $(shell [ "$$($(GO) env CGO_ENABLED)" = 1 ] && command -v $$($(GO) env CC) >/dev/null && echo -race)

# Packages with tests of whole fabrics in real time, which skip them under the race detector.
REALTIME := ./scenario/compare

unit:
	@[ -n "$(RACE)" ] || echo "no C compiler: testing without the race detector"
	$(GO) test $(RACE) -timeout 12m $(PKGS)
	$(if $(RACE),$(GO) test -timeout 12m $(REALTIME))

lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet $(PKGS)

test-bmv2: build ## the same data-plane and end-to-end tests on simple_switch_grpc (root, Mininet)
	@command -v simple_switch_grpc >/dev/null || { echo "simple_switch_grpc is not on the PATH: install p4lang's packages, see README"; exit 1; }
	HEADGATE_BMV2=1 $(GO) test -p 1 -count=1 -timeout 30m ./tests/...

bench: ## benchmarks, with allocations
	$(GO) test -run '^$$' -bench . -benchmem $(PKGS)

bench-sim: build ## the simulator's packet-hops per CPU second and its load-90 (about 2 minutes)
	$(BIN) sim run bench-permutation
	$(BIN) sim run load-90

bench-bmv2: ## packets per second side by side with simple_switch_grpc (root, about 15 minutes)
	$(GO) run ./tests/bench/bmv2 $(ARGS)

mininet: build ## a Mininet CLI over two switches (root); ARGS="--switch bmv2"
	mininet/line.py $(ARGS)

p4: ## recompile p4src for BMv2 with p4c and regenerate its constants
	$(MAKE) -C p4src

p4-tofino: ## compile p4src for Tofino 1 and 2 with p4c-barefoot (minutes); CPU_PORT=192 for another CPU port
	$(MAKE) -C p4src tofino CPU_PORT=$(CPU_PORT)

proto: ## regenerate the Go code of all protobuf files (protoc, protoc-gen-go, protoc-gen-go-grpc)
	protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative api/headgate/v1/headgate.proto controller/bfrt/bfrtpb/bfruntime.proto

clean: ## remove what make built
	rm -rf bin
