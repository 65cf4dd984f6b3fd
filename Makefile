# Names of the workflows. What a build is stands in CMakePresets.json, what it needs in cmake/packages.txt.

JOBS ?= $(shell nproc)
# Seconds for each fuzzer.
FUZZ_SECONDS ?= 60

CONFIGURE := cmake $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache) --preset
BUILD := cmake --build
# The results are kept whole in test-results.xml of the build folder, for whoever counts them.
CTEST := ctest --output-on-failure --no-tests=error --parallel $(JOBS) --output-junit test-results.xml \
         --test-output-size-passed 10000000 --test-output-size-failed 10000000 --test-dir
# Ours: not what the build makes.
SOURCES = $(shell find . -path ./build -prune -o \( -name '*.h' -o -name '*.cc' \) -print)

.PHONY: help setup build test demo drill bench format lint lint-format lint-tidy sim sim-search sim-mutations asan tsan fuzz soak clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## */make \1\t/p' Makefile | expand -t 16

setup: ## install the packages that are missing (apt-get, sudo)
	@cmake/setup.sh

build: setup ## build/bin/iggy-replicate and build/bin/iggy-sandbox
	@$(CONFIGURE) dev
	@$(BUILD) build --parallel $(JOBS)

test: build ## every test
	@$(CTEST) build $(if $(NO_DOCKER),-LE docker)

drill: build ## three disasters in containers, and what they cost (Docker Engine, docker-compose)
	@docker/drill.sh

demo: build ## two small clusters, a link, a crash, and the proof that nothing was lost
	@integration/demo.sh

bench: build ## the appliance beside what this machine and the servers could do at best (BENCH: flags of bench.py)
	@/usr/bin/python3 integration/bench/bench.py --out build/bench $(BENCH)

format: setup ## format the sources
	@clang-format-19 -i $(SOURCES)

lint: lint-format lint-tidy ## formatting, warnings and clang-tidy

lint-format: setup
	@clang-format-19 --dry-run --Werror $(SOURCES)

# After a build, because generated headers must be there. Compiler warnings count as findings.
lint-tidy: build
	@run-clang-tidy-19 -quiet -p build -j $(JOBS) -checks='clang-diagnostic-*' '^$(CURDIR)/(?!build/).*\.cc$$'

sim: build ## SEEDS (200) seeds of the whole link on virtual time; SEED=n replays one
	@first=$${FIRST:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; $(if $(SEED),,echo "from seed $$first";) \
	  SIM_SEED=$(SEED) SIM_FIRST=$$first SIM_SEEDS=$(or $(SEEDS),200) build/tests/sim_test --gtest_filter='Sim.Random*'

sim-search: build ## the same, until a seed fails
	@while $(MAKE) --no-print-directory sim; do :; done

sim-mutations: build ## the core broken in one place at a time: which of SEEDS (400) finds it
	@SEEDS=$(SEEDS) ONLY=$(ONLY) replicator/sim/mutations.py

# Without the tests of real processes: their deadlines are those of optimised programs.
asan: setup ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(CONFIGURE) asan
	@$(BUILD) build/asan --parallel $(JOBS)
	@UBSAN_OPTIONS=print_stacktrace=1 $(CTEST) build/asan -LE 'integration|docker|deploy'

# Only these, and none with gRPC inside: its package is not instrumented. A test is named as its target.
tsan: setup ## the tests with label `threads` under ThreadSanitizer
	@$(CONFIGURE) tsan
	@$(BUILD) build/tsan --parallel $(JOBS) \
	  --target $$(ctest --test-dir build/tsan --show-only -L threads | sed -n 's/^ *Test *#[0-9]*: //p')
	@$(CTEST) build/tsan -L threads

fuzz: setup ## every fuzzer for FUZZ_SECONDS (60)
	@$(CONFIGURE) fuzz
	@$(BUILD) build/fuzz --parallel $(JOBS) --target fuzzers
	@mkdir -p build/fuzz/findings
	@ls build/fuzz/fuzz | xargs -P $(JOBS) -I FUZZER sh -c 'mkdir -p build/fuzz/corpus/FUZZER && build/fuzz/fuzz/FUZZER \
	  build/fuzz/corpus/FUZZER $$(ls -d */fuzz/corpus/FUZZER 2>/dev/null) \
	  -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -print_funcs=0 -verbosity=0 -rss_limit_mb=2048 \
	  -artifact_prefix=build/fuzz/findings/'

soak: build ## SOAK_MINUTES (30) of growing and shrinking load and random mishaps
	@python3 integration/soak.py

clean: ## remove everything that was built
	@rm -rf build
