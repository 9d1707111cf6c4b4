# Headgate. `make help` lists the targets.
GO         ?= go
BIN        := bin/headgate
ARGS       ?=
PKGS       := ./...

# All builds and tests share these flags, so that each reuses the packages that another compiled.
# Without grpcnotrace, gRPC's page /debug/requests brings html/template, which calls methods by
# name: the linker then keeps every method of every type, 7 MB of them. The binary and the tests are
# linked without debug information, which is a tenth of the compiler's work. To debug a test, call
# go test without make.
export GOFLAGS += -trimpath -tags=grpcnotrace -gcflags=all=-dwarf=false

# The profile that "make profile" records: the compiler inlines the calls that most packets take. go
# build finds the file by itself. Tests name it here, so that builds and tests share compiled
# packages.
export GOFLAGS += '-pgo=$(CURDIR)/cmd/headgate/default.pgo'

# Only the race detector needs cgo. Everything else is compiled without it, as the binary is, and
# only once.
CGO := $(shell $(GO) env CGO_ENABLED)
export CGO_ENABLED := 0

# With the default heap, compilers and analysers spend a fifth of their time in the garbage
# collector.
TOOLS := GOGC=400 $(GO)

.DEFAULT_GOAL := build
.PHONY: help build run test lint fuzz unit sequential realtime checks bench bench-sim profile bench-scale soak test-bmv2 test-tcp test-faults test-ha test-deploy test-samples test-symbolic test-tutorials bench-bmv2 bench-peers figures mininet test-mininet deb image p4 p4-tofino proto clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

build: ## build bin/headgate, one static binary without debug information
	$(TOOLS) build -buildvcs=auto -ldflags="-s -w" -o $(BIN) ./cmd/headgate

run: build ## run the default fabric; ARGS="--for 40s --json out.json"
	$(BIN) run $(ARGS)

# Real-time tests mostly sleep, so the checks that need the processors run beside them, at lower priority.
test: unit ## everything that needs no root; root-only parts run when root
	@$(MAKE) --no-print-directory -j2 -Otarget realtime checks

checks:
	@nice -n 5 $(MAKE) --no-print-directory lint sequential

# The race detector needs a C compiler. Without one, the same tests run without the detector.
RACE := $(shell [ "$(CGO)" = 1 ] && command -v $$($(GO) env CC) >/dev/null && echo -race)

# Packages that start no goroutine; tests/house checks this. The race detector finds nothing in them
# and makes the simulator fifteen times slower. The exception is a simulation on several cores,
# which unit tests by name.
SEQUENTIAL := ./cnpgen ./cnpgen/flowtable ./controller/config ./controller/feature ./controller/feature/buffer ./controller/feature/buffer/sonic \
	./controller/feature/lldp ./controller/feature/pfcwatchdog ./controller/feature/qos \
	./controller/feature/routing ./controller/feature/sourceguard ./controller/feature/soze \
	./controller/feature/telemetry ./controller/p4runtime/pipeline ./controller/p4runtime/poll ./controller/p4runtime/reconcile \
	./controller/topology ./controller/trafficmanager ./sim ./sim/event \
	./sim/topo ./sim/workload ./headroom/... ./hosts/agent ./hosts/law/... \
	./hosts/transport ./int/... ./internal/bytestring ./internal/cbd ./internal/confine \
	./internal/heap ./internal/maxmin ./internal/version ./internal/yamlnode ./p4src/... ./packet ./plotting \
	./softswitch/bmv2json ./softswitch/engine/expr ./softswitch/engine/hash ./softswitch/engine/match \
	./softswitch/engine/phv ./softswitch/p4rt/arbitration ./softswitch/p4rt/digest \
	./softswitch/p4rt/entity ./softswitch/p4rt/schema ./softswitch/stf \
	./softswitch/tm ./tables/... ./tests/docs ./tests/house ./units

# Packages with long tests that use one goroutine or the wall clock, or that measure memory. They run without the race detector.
SIMULATED := ./cli/lab ./sim/experiment ./tests/cost ./tests/dataplane ./tests/symbolic

# Packages that run whole fabrics in real time. The race detector would slow them down until their
# results are invalid. They run one at a time, so that they do not disturb each other.
REALTIME := ./emulation ./tests/e2e ./tests/failover ./tests/firstfabric

# By default, a program with the race detector waits for a second at its end for late reports.
export GORACE ?= atexit_sleep_ms=50

# Many tests wait for something, so four at a time keep two processors busy. go test skips its vet,
# because lint runs go vet.
unit:
	@[ -n "$(RACE)" ] || echo "no C compiler: testing without the race detector"
	CGO_ENABLED=$(if $(RACE),1,0) $(TOOLS) test $(RACE) -vet=off -p 4 -timeout 40m $$($(GO) list $(PKGS) | grep -vxF "$$($(GO) list $(SEQUENTIAL))")
	CGO_ENABLED=$(if $(RACE),1,0) $(TOOLS) test $(RACE) -vet=off -run 'TestCoresAgree|TestWorkerPool|TestBarrier' ./sim

sequential:
	$(TOOLS) test -vet=off -timeout 40m $(SEQUENTIAL) $(SIMULATED)

realtime:
	$(TOOLS) test -vet=off -timeout 40m -p 1 $(REALTIME)
	$(TOOLS) test -vet=off -run 'TestStrangersLeaveLinksUp|TestPlanIsWhatApplyChanges' ./controller

# Every target gets its share of FUZZTIME, in seconds. Go keeps failing inputs under the package's testdata/fuzz, and
# every later go test runs them.
FUZZTIME ?= 300
fuzz: ## all fuzz targets, five minutes together
	@list=$$(git grep -oE '^func Fuzz[A-Za-z0-9]+' -- '*_test.go' | sed -E 's|/[^/]*:func | |'); \
	share=$$(( ($(FUZZTIME) + $$(echo "$$list" | wc -l) - 1) / $$(echo "$$list" | wc -l) )); \
	echo "$$list" | while read -r folder target; do \
		$(TOOLS) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $${share}s ./$$folder || exit 1; done

lint: ## gofmt, go vet, staticcheck, no function that the programs do not reach, and the spelling of the documentation
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(TOOLS) vet $(PKGS)
	$(TOOLS) tool staticcheck $(PKGS)
	@dead=$$($(TOOLS) tool deadcode ./cmd/... ./p4src/... ./softswitch/native/gen) || exit 1; if [ -n "$$dead" ]; then echo "no program calls these:"; echo "$$dead"; exit 1; fi
	@[ -f /usr/share/dict/british-english ] || echo "spelling: not checked, as Debian's wbritish is not installed"
	$(TOOLS) test -vet=off -run TestSpelling ./tests/docs
	@if curl -sfm 5 -o /dev/null https://vuln.go.dev/index/modules.json; then $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 $(PKGS); \
	else echo "govulncheck: not run, as its data base at https://vuln.go.dev is not reached"; fi

test-bmv2: build ## the same data-plane and end-to-end tests on simple_switch_grpc (root, Mininet)
	@command -v simple_switch_grpc >/dev/null || { echo "simple_switch_grpc is not on the PATH: install p4lang's packages, see README"; exit 1; }
	HEADGATE_BMV2=1 $(GO) test -p 1 -count=1 -timeout 30m ./tests/...

test-tcp: build ## Söze and PrioPlus in Linux' TCP: the laws by traces, applications' connections by weight and by priority (root, minutes)
	$(GO) test -v -count=1 ./hosts/tcp/...
	HEADGATE_TCP=1 $(GO) test -v -count=1 -timeout 30m -run 'Applications|Weight|Connections|AgentRestarts|Priorities|WebServer|ParkingLot|CriticalPath|Steps|Cheats|Jumbo' ./tests/firstfabric

test-faults: ## kill, freeze and cut a fabric of processes, embedded and BMv2, and the links of a host at two leaves: lost packets (root; minutes)
	HEADGATE_FAULTS=1 $(GO) test -v -count=1 -timeout 30m ./tests/faults
	$(GO) test -v -count=1 -run TestShapes ./tests/failover

test-ha: ## three controllers, killed, frozen, cut off, out of disk, back with another uptime, the wall clock of one set, and a linearizability checker over what clients saw (root; HEADGATE_HA=10 times each, an hour)
	HEADGATE_HA=$(or $(HEADGATE_HA),10) $(GO) test -v -count=1 -timeout 90m ./tests/cluster

test-deploy: deb ## the manifest by Kubernetes' types; the package by lintian, and in a clean Debian: installed, its units' commands run, removed (root, debootstrap)
	cd deploy && $(GO) test ./...
	@if command -v lintian >/dev/null; then lintian --allow-root --fail-on error,warning bin/headgate_*.deb; else echo "lintian is not on the PATH: apt install lintian"; fi
	deploy/deb/clean-root.sh bin/headgate_*_$$($(GO) env GOARCH).deb

test-samples: ## compare with simple_switch_grpc over p4c's v1model samples, random packets (P4C=/path/to/p4c; minutes)
	@[ -n "$(P4C)" ] || { echo "P4C is not set: clone github.com/p4lang/p4c and name it, P4C=/path/to/p4c"; exit 1; }
	cd tests/samples && P4C="$(abspath $(P4C))" $(GO) test -count=1 -timeout 60m -parallel 8 -run TestSamples $(ARGS)

test-symbolic: ## replay cases that p4testgen makes of the program, on the embedded switch and BMv2 (ARGS="-tests 50"; ten minutes)
	@command -v p4testgen >/dev/null || { echo "p4testgen is not on the PATH: build github.com/p4lang/p4c with -DENABLE_TEST_TOOLS=ON"; exit 1; }
	cd tests/symbolic && HEADGATE_SYMBOLIC=1 $(GO) test -v -count=1 -timeout 2h -run TestSymbolic -args $(ARGS)

test-tutorials: build ## compare with simple_switch_grpc over p4lang/tutorials in Mininet (root; TUTORIALS=/path/to/tutorials; ten minutes)
	@test -n "$(TUTORIALS)" || { echo "set TUTORIALS to a checkout of https://github.com/p4lang/tutorials"; exit 1; }
	tests/tutorials/compare.py "$(TUTORIALS)" $(ARGS)

bench: ## benchmarks, with allocations
	$(GO) test -run '^$$' -bench . -benchmem $(PKGS)

bench-sim: build ## the simulator's packet-hops per CPU second, its speed-up on all cores, its memory and its growth by hosts (about 5 minutes)
	$(GO) test -run '^$$' -bench . -benchtime 5x -timeout 30m ./sim/experiment
	$(GO) test -run TestGrowth -v -timeout 30m ./sim/experiment -growth $(CURDIR)/bin/growth.svg
	for name in bench-permutation load-90 bench-fat-tree; do $(BIN) sim run $$name --jobs 1 || exit 1; done

profile: ## measure anew where most packets go, for the compiler (root; five minutes of a quiet machine)
	@rm -rf bin/profile && mkdir -p bin/profile
	for b in sim/experiment:'Load90|Permutation|FatTree' softswitch/engine:'L3|Ports|OwnPipeline' softswitch/standalone:'PcapFiles|Veth' softswitch/p4rt:'Write/grpc/updates=1000'; do \
		$(GO) test -run '^$$' -bench "$${b#*:}" -benchtime 5s -o bin/profile/test -cpuprofile bin/profile/$$(basename $${b%:*}).prof ./$${b%:*} || exit 1; done
	$(GO) tool pprof -proto bin/profile/*.prof >bin/profile/default.pgo
	mv bin/profile/default.pgo cmd/headgate/

bench-scale: ## one controller with 100, 300, 1000 switches of 1000 entries: memory, times, growth (ARGS="-entries 10000 -plot growth.png": 0.6 kB of heap an entry; minutes)
	cd tests/scale && HEADGATE_SCALE=1 $(GO) test -v -count=1 -timeout 2h -run TestScale -args $(ARGS)

soak: ## one controller under random faults for an hour: no growth, nothing to plan at the end (ARGS="-for 10m")
	cd tests/scale && HEADGATE_SOAK=1 $(GO) test -v -count=1 -timeout 25h -run TestSoak -args $(ARGS)

bench-bmv2: ## packets per second, or entries (ARGS="-programs tables -scenarios entries"), side by side with simple_switch_grpc (root, about 15 minutes)
	cd tests/bench/bmv2 && HEADGATE_BENCH=1 $(GO) test -count=1 -timeout 2h -run TestSideBySide -args $(ARGS)

bench-peers: ## the embedded switch and the simulator beside DPDK's pipeline, htsim and ns-3, those on the PATH (RTE_INSTALL_DIR=/path/to/dpdk; ARGS="-peers htsim"; minutes)
	cd tests/bench/bmv2 && HEADGATE_PEERS=1 $(GO) test -count=1 -timeout 2h -run 'TestSWX|TestPeers' -args $(ARGS)

figures: build ## make the papers' figures and docs/results; goes on where it was stopped; ARGS="--shard 0/2"
	$(BIN) sim figures $(ARGS)

mininet: build ## a leaf-spine fabric in Mininet with a CLI (root); ARGS="mininet/line.yaml --switch bmv2"
	mininet/fabric.py $(ARGS)

test-mininet: build ## the five systems on networks in Mininet, on both switches (root, minutes); ends with a matrix
	HEADGATE_MININET=1 $(GO) test -p 1 -count=1 -timeout 90m -v $(ARGS) ./tests/mininet

VERSION ?= $(shell git describe --tags --match 'v[0-9]*' 2>/dev/null | sed s/^v// || true)

DEB_VERSION = $(or $(VERSION),0.0.0+$(shell git rev-parse --short HEAD))

deb: build ## bin/headgate_*.deb: binary, systemd units, man pages, dashboard (VERSION=1.2.3)
	rm -rf bin/man bin/completions bin/*.deb && mkdir -p bin/man bin/completions && $(GO) run ./cmd/man bin/man && gzip -9n bin/man/*
	$(BIN) completion bash > bin/completions/headgate
	$(BIN) completion zsh > bin/completions/_headgate
	$(BIN) completion fish > bin/completions/headgate.fish
	printf 'headgate (%s) unstable; urgency=medium\n\n  * CHANGELOG.md in the source has the changes.\n\n -- Headgate <headgate@users.noreply.github.com>  %s\n' \
		'$(DEB_VERSION)' "$$(git log -1 --format=%cD)" | gzip -9n > bin/changelog.gz
	cd deploy && VERSION=$(DEB_VERSION) ARCH=$$($(GO) env GOARCH) $(GO) tool nfpm package --packager deb --target ../bin

image: build ## the OCI image headgate (docker, or DOCKER=podman or buildah)
	$(or $(DOCKER),docker) build -f deploy/Dockerfile -t headgate .

p4: ## recompile p4src for BMv2 with p4c and regenerate its constants and its translation to Go
	$(MAKE) -C p4src
	go generate ./softswitch/native/gen

p4-tofino: ## compile p4src for Tofino 1 and 2 with p4c-barefoot (minutes); CPU_PORT=192 for another CPU port
	$(MAKE) -C p4src tofino CPU_PORT=$(CPU_PORT)

proto: ## regenerate the Go code of all protobuf files (protoc, protoc-gen-go, protoc-gen-go-grpc)
	protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative api/headgate/v1/headgate.proto api/headgate/v1/status.proto controller/trafficmanager/tofino/bfrt/bfrtpb/bfruntime.proto

clean: ## remove what make built
	rm -rf bin
