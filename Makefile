# Names of the workflows. What a build is stands in CMakePresets.json, what it needs in cmake/packages.txt.

JOBS ?= $(shell nproc)
# Seconds for each fuzzer.
FUZZ_SECONDS ?= 60

CCACHE := $(shell command -v ccache)
CONFIGURE := cmake $(if $(CCACHE),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache) --preset
BUILD := cmake --build
# Twice as many places as processors: a process test mostly waits and takes one, a program of unit tests takes two.
# The results are kept whole in test-results.xml of the build folder, for whoever counts them.
CTEST := ctest --output-on-failure --no-tests=error --parallel $$((2 * $(JOBS))) --output-junit test-results.xml \
         --test-output-size-passed 10000000 --test-output-size-failed 10000000 --test-dir
# Ours: not what the build makes.
SOURCES = $(shell find . -path ./build -prune -o \( -name '*.h' -o -name '*.cc' \) -print)

.PHONY: help setup build test demo drill bench format lint lint-format lint-tidy sim sim-search asan tsan fuzz soak clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## */make \1\t/p' Makefile | expand -t 16

setup: ## install the packages that are missing (apt-get, sudo)
	@cmake/setup.sh

build: setup ## build/bin/iggy-replicate and build/bin/iggy-sandbox
	@$(CONFIGURE) dev -DPRECOMPILE=$(if $(CCACHE),OFF,ON)
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

# After a build, because generated headers must be there. Compiler warnings count as findings. The plugin makes it fast,
# and needs Clang's own headers (libclang-19-dev, llvm-19-dev: CI has them); without them the same is checked, slowly.
CLANG_HEADERS := /usr/lib/llvm-19/include
TIDY_PLUGIN := $(if $(and $(wildcard $(CLANG_HEADERS)/clang/AST),$(wildcard $(CLANG_HEADERS)/llvm/ADT)),build/tidy_own_code.so)
lint-tidy: build $(TIDY_PLUGIN)
	@run-clang-tidy-19 -quiet -p build -j $(JOBS) $(addprefix -load $(CURDIR)/,$(TIDY_PLUGIN)) -checks='clang-diagnostic-*' \
	  '^$(CURDIR)/(?!build/).*\.cc$$'

build/tidy_own_code.so: cmake/tidy_own_code.cc
	@mkdir -p build
	@clang++-19 -std=c++20 -fno-rtti -fPIC -shared -isystem $(CLANG_HEADERS) $< -o $@

sim: build ## SEEDS (200) seeds of the whole link on virtual time; SEED=n replays one
	@first=$${FIRST:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; $(if $(SEED),,echo "from seed $$first";) \
	  SIM_SEED=$(SEED) SIM_FIRST=$$first SIM_SEEDS=$(or $(SEEDS),200) build/tests/sim_test --gtest_filter='Sim.Random*'

sim-search: build ## the same, until a seed fails
	@while $(MAKE) --no-print-directory sim; do :; done

# Of the tests of real processes those with label `sanitized`.
asan: setup ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(CONFIGURE) asan
	@$(BUILD) build/asan --parallel $(JOBS)
	@UBSAN_OPTIONS=print_stacktrace=1 $(CTEST) build/asan -L 'unit|official|sanitized'

# Only these, and none with gRPC inside: its package is not instrumented. A test is named as its target.
tsan: setup ## the tests with label `threads` under ThreadSanitizer
	@$(CONFIGURE) tsan
	@$(BUILD) build/tsan --parallel $(JOBS) \
	  --target $$(ctest --test-dir build/tsan --show-only -L threads | sed -n 's/^ *Test *#[0-9]*: //p')
	@$(CTEST) build/tsan -L threads

fuzz: setup ## every fuzzer for FUZZ_SECONDS (60)
	@$(CONFIGURE) fuzz
	@$(BUILD) build/asan --parallel $(JOBS) --target fuzzers
	@mkdir -p build/fuzz/findings
	@ls build/asan/fuzz | xargs -P $(JOBS) -I FUZZER sh -c 'mkdir -p build/fuzz/corpus/FUZZER && build/asan/fuzz/FUZZER \
	  build/fuzz/corpus/FUZZER $$(ls -d */fuzz/corpus/FUZZER 2>/dev/null) \
	  -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -print_funcs=0 -verbosity=0 -rss_limit_mb=2048 \
	  -artifact_prefix=build/fuzz/findings/'

soak: build ## SOAK_MINUTES (30) of growing and shrinking load and random mishaps
	@python3 integration/soak.py

clean: ## remove everything that was built
	@rm -rf build
