# make              the library, build/libtiny_compile.a, and the tool, build/tc
# make demo         what compiling buys, step by step; FILE=path takes another text
# make train        a byte-level GPT learns the lessons, or FILE=path; ARGS='--steps=500 --resume', ARGS=--help
# make sample       text from its checkpoint; ARGS="--prompt='# A' --temperature=0.5"
# make shapes       a convolutional network learns to tell drawn shapes apart
# make test         every test case; ONLY='[fuse]' some, SLOWEST=10 where the time went
# make fuzz         N=1000 random programs against the interpreter
# make bench        speed: bench-cpu against hand-written loops (ARGS='softmax mlp': some rows),
#                   bench-dots against OpenBLAS's gemm, bench-gpu against PyTorch where there is a GPU (GPU_ARGS='--rows softmax,mse')
# make speed        random functions of networks, ours and PyTorch's; ARGS='--seeds=1..20 --target=cuda', ARGS=--patterns:
#                   86 named ones, ARGS=--help
# make models       small models on the CPU, ours and PyTorch's; ARGS='--threads=1,16', ARGS=--help
# make bench-table  README's table and the charts from the newest record of a GPU, or RECORD=
# make lesson-05    a lesson of the course; ex-05-1, hint-05-1, progress: see lessons/README.md
# make notebooks    runs notebooks/ and stores their outputs; make check-notebooks compares
# make check-exercises  every exercise's start, solution and wrong answers
# make size         lines a module; fails above the limit
# make executed     which modules README's softmax on the CPU runs through, by gcov; WRITE=1 puts the list into the map
# make format       clang-format in place; make check-format only looks
# make check-tidy   clang-tidy's rules (.clang-tidy), where it is installed; FILES= some sources
# make docs         the headers as an API reference, build/docs/html/index.html, by Doxygen
# make compile_commands.json  for editors and clang-tidy
# make install      PREFIX=/usr/local; make check-install: programs of other projects use it
# make clean
#
# SANITIZE=1 builds into build-sanitize with address and undefined-behaviour checks,
# SANITIZE=thread into build-thread with checks for races: OMP_NUM_THREADS=1, since GNU's OpenMP
# synchronises in ways that these do not see.
# CXX=clang++ works; OPT=-O0, WERROR= and J=4 override what they name; V=1 shows the commands.

CXX ?= g++
ifeq ($(origin CXX),default)
CXX := g++
endif
J ?= $(shell nproc 2>/dev/null || echo 2)
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(J)
endif
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:

N ?= 1000
SLOWEST ?= 0
PREFIX ?= /usr/local
OPT ?= $(if $(COVERAGE),-O0 --coverage,$(if $(SANITIZE),-O1,-O2))
WERROR ?= -Werror
VERSION := 0.1.0

BUILD := build
FLAGS := -std=c++20 $(OPT) -Wall -Wextra $(WERROR) -fPIC -fopenmp -ffp-contract=off \
         -fno-math-errno
ifeq ($(SANITIZE),thread)
BUILD := build-thread
FLAGS += -fsanitize=thread -g1 $(if $(findstring clang,$(CXX)),,-Wno-tsan)  # fences, which it does not follow
else ifdef SANITIZE
BUILD := build-sanitize
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=all
FLAGS += $(SANITIZERS) -fno-omit-frame-pointer -g1 \
  $(if $(findstring clang,$(CXX)),,-Wno-maybe-uninitialized)  # g++ 12: false ones in <regex>
export TC_CXXFLAGS := $(SANITIZERS)  # generated code is checked as well
export ASAN_OPTIONS := $(or $(ASAN_OPTIONS),detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1:protect_shadow_gap=0)
export UBSAN_OPTIONS := $(or $(UBSAN_OPTIONS),print_stacktrace=1)
endif
ifdef COVERAGE
BUILD := build-coverage
endif
INCLUDES := -I. -I$(BUILD)/generated
SHOW = $(if $(V),,@echo '$(1) $(2)'; )
COMPILE = $(call SHOW,c++,$<)$(CXX) $(FLAGS) $(EXTRA) $(INCLUDES) $(CXXFLAGS) -MMD -MP -c $< -o $@
LINK = $(call SHOW,link,$@)$(CXX) $(FLAGS) $(CXXFLAGS) $(LDFLAGS)
LIBS := -ldl

# Sources are found by where they stand; of the files in cli, tests/fuzz and tests/bench those
# with a main are programs and the others parts of them.
objects = $(patsubst %.cpp,$(BUILD)/obj/%.o,$(1))
with_main = $(if $(1),$(shell grep -lE '^int main\b' $(1)))
CLI := $(wildcard tiny_compile/cli/*.cpp)
CLI_PARTS := $(filter-out $(call with_main,$(CLI)),$(CLI))
LIBRARY := $(filter-out $(CLI),$(wildcard tiny_compile/*/*.cpp))
FUZZ := $(filter-out %_test.cpp,$(wildcard tests/fuzz/*.cpp))
FUZZ_PARTS := $(filter-out $(call with_main,$(FUZZ)),$(FUZZ))
GPU_BENCH := $(filter-out %_test.cpp,$(wildcard tests/bench/gpu_*.cpp))
GPU_BENCH_PARTS := $(filter-out $(call with_main,$(GPU_BENCH)),$(GPU_BENCH))
DOT_BENCH := tests/bench/dots.cpp
SPEED := $(filter-out %_test.cpp,$(wildcard tests/bench/speed*.cpp))
SPEED_PARTS := $(filter-out $(call with_main,$(SPEED)),$(SPEED)) $(GPU_BENCH_PARTS)
MODELS := $(filter-out %_test.cpp,$(wildcard tests/bench/models*.cpp))
MODELS_PARTS := $(filter-out $(call with_main,$(MODELS)),$(MODELS))
BENCH := $(filter-out %_test.cpp $(GPU_BENCH) $(DOT_BENCH) $(SPEED) $(MODELS),$(wildcard tests/bench/*.cpp))
TESTS := $(wildcard tests/*_test.cpp tests/*/*_test.cpp)
TEST_SOURCES := $(filter-out %_test.cpp $(FUZZ) $(BENCH) $(GPU_BENCH) $(DOT_BENCH) $(SPEED) $(MODELS),$(wildcard tests/*/*.cpp))
TOOLS := $(call with_main,$(TEST_SOURCES))  # tests/base/ulp.cpp: make build/ulp
TEST_PARTS := tests/main.cpp $(filter-out $(TOOLS),$(TEST_SOURCES))

ARCHIVE := $(BUILD)/libtiny_compile.a
LIBRARY_OBJECTS := $(call objects,$(LIBRARY))
CLI_OBJECTS := $(call objects,$(CLI_PARTS))
FUZZ_OBJECTS := $(call objects,$(FUZZ_PARTS))
TEST_OBJECTS := $(call objects,$(TESTS) $(TEST_PARTS) $(SPEED_PARTS) $(MODELS_PARTS)) $(CLI_OBJECTS) \
  $(FUZZ_OBJECTS)
PROGRAMS := $(if $(wildcard tiny_compile/cli/tc.cpp),$(BUILD)/tc)

.PHONY: all demo train sample shapes test fuzz bench bench-cpu bench-dots bench-gpu bench-table speed models notebooks check-notebooks size executed format \
  check-format check-tidy docs install check-install clean FORCE
all: $(ARCHIVE) $(PROGRAMS)

# One line that changes with the compiler, its flags and what is precompiled; objects are rebuilt when it
# does.
STANDARD_HEADERS := algorithm array cmath cstdint cstring functional map memory optional set sstream string \
  string_view tuple unordered_map utility variant vector
COMPILER = $(CXX) $(FLAGS) $(CXXFLAGS) $(STANDARD_HEADERS)
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(COMPILER)' | cmp -s - $@ || echo '$(COMPILER)' > $@

# The standard library's headers take a third of a source's time, so they are compiled once. Every source
# still names what it uses.
STANDARD := $(BUILD)/precompiled/standard.h
$(STANDARD): $(BUILD)/flags
	@mkdir -p $(@D)
	@printf '#include <%s>\n' $(STANDARD_HEADERS) > $@
$(STANDARD).gch: $(STANDARD)
	$(call SHOW,c++,$<)$(CXX) $(FLAGS) $(CXXFLAGS) -x c++-header $< -o $@

$(BUILD)/obj/%.o: %.cpp $(BUILD)/flags | $(BUILD)/generated/prelude_text.h $(STANDARD).gch
	@mkdir -p $(@D)
	$(COMPILE) -include $(STANDARD)

$(ARCHIVE): $(LIBRARY_OBJECTS)
	@rm -f $@
	$(call SHOW,ar,$@)ar rcs $@ $^

$(BUILD)/tc: $(call objects,tiny_compile/cli/tc.cpp) $(CLI_OBJECTS) $(ARCHIVE)
	$(LINK) $^ $(LIBS) -o $@

$(BUILD)/demo: $(call objects,tiny_compile/cli/demo.cpp) $(CLI_OBJECTS) $(ARCHIVE)
	$(LINK) $^ $(LIBS) -o $@

$(BUILD)/train: $(call objects,tiny_compile/cli/train.cpp) $(CLI_OBJECTS) $(ARCHIVE)
	$(LINK) $^ $(LIBS) -o $@

# The prelude as text for the generated kernels: prelude.h is compiled here and pasted there.
# A literal ends every 400 lines, because compilers need only take 64 kB in one.
PRELUDE := $(addprefix tiny_compile/base/prelude,.h _integers.h _halves.h _math.h _logistic.h _short.h _normal.h _random.h _trig.h _arc.h \
  _gamma.h)
$(BUILD)/generated/prelude_text.h: $(PRELUDE)
	@mkdir -p $(@D)
	@{ echo '// Made by the Makefile from $(PRELUDE).'; \
	   echo '#pragma once'; \
	   echo 'inline constexpr const char kPreludeText[] = R"TC_RAW('; \
	   awk 'FNR == 1 && NR > 1 { print "" } !length && n > 300 { print ")TC_RAW\"\nR\"TC_RAW("; n = 0 } { n++; print }' $(PRELUDE); \
	   echo ')TC_RAW";'; } > $@
$(call objects,tiny_compile/codegen/prelude.cpp): $(BUILD)/generated/prelude_text.h

$(BUILD)/shapes: $(call objects,tiny_compile/cli/shapes_main.cpp) $(CLI_OBJECTS) $(ARCHIVE)
	$(LINK) $^ $(LIBS) -o $@

demo: $(BUILD)/demo all
	@$(BUILD)/demo $(FILE)

# Threads that wait for others sleep: where something else has a core, spinning ones cost half the time.
train sample: export OMP_WAIT_POLICY ?= passive
train: $(BUILD)/train
	@$(BUILD)/train $(FILE) $(ARGS)
sample: $(BUILD)/train
	@$(BUILD)/train --sample $(ARGS)
shapes: $(BUILD)/shapes
	@OMP_PROC_BIND=true $(BUILD)/shapes

# Catch2, version 3 or 2. Recursive variables: looked up after tests/find_catch2.sh installed it.
CATCH_FLAGS = $(shell pkg-config --cflags catch2 2>/dev/null | sed 's/-I/-isystem /g')
HASH := \#
CATCH_IS_3 = $(shell echo '$(HASH)include <catch2/catch_all.hpp>' | \
  $(CXX) -std=c++20 $(CATCH_FLAGS) $(CXXFLAGS) -E -x c++ - >/dev/null 2>&1 && echo yes)
CATCH_LIBS = $(if $(CATCH_IS_3),$(or $(shell pkg-config --libs catch2 2>/dev/null),-lCatch2))

$(BUILD)/catch2: tests/find_catch2.sh
	@mkdir -p $(@D)
	@tests/find_catch2.sh $@ $(CXX) -std=c++20 $(CXXFLAGS)

$(call objects,$(TESTS) $(TEST_PARTS)): EXTRA = -O1 $(CATCH_FLAGS)
$(call objects,$(TESTS) $(TEST_PARTS)): | $(BUILD)/catch2

$(BUILD)/tests: $(TEST_OBJECTS) $(ARCHIVE)
	$(LINK) $^ $(CATCH_LIBS) $(LIBS) -o $@

ifeq ($(TESTS),)
test:
	@echo '0 passed, 0 failed, 0 skipped'
else
test: $(BUILD)/tests
	@OMP_WAIT_POLICY=passive $(BUILD)/tests --jobs=$(J) --slowest=$(SLOWEST) \
	  $(if $(ONLY),"$(ONLY)")
endif

$(BUILD)/fuzz: $(call objects,$(FUZZ)) $(ARCHIVE)
	$(LINK) $^ $(LIBS) -o $@
fuzz: $(BUILD)/fuzz
	@$(BUILD)/fuzz $(N)

# Four billion arguments: with the machine's own fma, whose bits are the library's.
$(call objects,$(TOOLS)): EXTRA = -O3 -march=native -fno-trapping-math
$(foreach tool,$(TOOLS),$(eval $(BUILD)/$(basename $(notdir $(tool))): \
  $(call objects,$(tool)) $(ARCHIVE); $$(LINK) $$^ $$(LIBS) -o $$@))

# The peers written by hand are built as a user would build them for speed.
$(call objects,$(wildcard tests/bench/hand*.cpp tests/bench/eigen_peers.cpp)): EXTRA = \
  -O3 -march=native -fno-trapping-math -ffp-contract=fast -Wno-psabi
$(BUILD)/bench: $(call objects,$(BENCH)) $(CLI_OBJECTS) $(ARCHIVE)
	$(LINK) $^ $(LIBS) -o $@
bench: bench-cpu bench-gpu
bench-cpu: $(BUILD)/bench
	@OMP_PROC_BIND=true $(BUILD)/bench $(ARGS)

$(BUILD)/dots: $(call objects,$(DOT_BENCH)) $(ARCHIVE)
	$(LINK) $^ $(LIBS) -o $@
bench-dots: $(BUILD)/dots
	@$(BUILD)/dots $(ARGS)

# With python3 also PyTorch's times and the record; else our rows alone.
PYTHON ?= python3
$(BUILD)/gpu_bench: $(call objects,$(GPU_BENCH)) $(ARCHIVE)
	$(LINK) $^ $(LIBS) -o $@
bench-gpu: $(BUILD)/gpu_bench $(if $(filter bench,$(MAKECMDGOALS)),bench-cpu)
	@if command -v $(PYTHON) >/dev/null; then $(PYTHON) tests/bench/gpu_bench.py $(GPU_ARGS); \
	  else $(BUILD)/gpu_bench $(GPU_ARGS); fi

# Random and named functions of networks; with python3 beside PyTorch.
$(BUILD)/speed: $(call objects,$(SPEED) $(GPU_BENCH_PARTS)) $(ARCHIVE)
	$(LINK) $^ $(LIBS) -o $@
speed: $(BUILD)/speed
	@if command -v $(PYTHON) >/dev/null; then $(PYTHON) tests/bench/speed_peers.py $(ARGS); \
	  else $(BUILD)/speed $(ARGS); fi

# Small models; with python3 beside PyTorch.
$(BUILD)/models: $(call objects,$(MODELS) $(GPU_BENCH_PARTS)) $(ARCHIVE)
	$(LINK) $^ $(LIBS) -o $@
models: $(BUILD)/models
	@if command -v $(PYTHON) >/dev/null; then $(PYTHON) tests/bench/models.py $(ARGS); \
	  else $(BUILD)/models $(ARGS); fi

bench-table:
	@$(PYTHON) tests/bench/charts.py $(RECORD)

notebooks: all
	@MAKEFLAGS= $(PYTHON) notebooks/run.py
check-notebooks: all
	@if command -v $(PYTHON) >/dev/null; then MAKEFLAGS= $(PYTHON) notebooks/run.py --check; \
	  else echo 'notebooks: skipped, $(PYTHON) is missing: apt install jupyter-nbconvert python3-ipykernel python3-matplotlib'; fi

size:
	@.ci/size
executed:
	@$(MAKE) --no-print-directory COVERAGE=1 build-coverage/libtiny_compile.a
	@CXX='$(CXX)' .ci/executed build-coverage $(if $(WRITE),--write)

FORMATTED := $(filter-out %/mine.cpp,$(wildcard tiny_compile/*.h tiny_compile/*/*.h tiny_compile/*/*.cpp tests/*.h \
  tests/*.cpp tests/*/*.h tests/*/*.cpp lessons/*/*.h lessons/*/*.cpp lessons/*/*/*.h lessons/*/*/*.cpp))
format:
	@clang-format -i $(FORMATTED)
check-format:
	@command -v clang-format >/dev/null || \
	  { echo 'check-format: clang-format is missing: apt-get install clang-format'; exit 1; }; \
	printf '%s\n' $(FORMATTED) | xargs -P $(J) -n 64 clang-format --dry-run -Werror || \
	  { echo 'not formatted; make format'; exit 1; }

PUBLIC := $(filter-out tiny_compile/cli/%,$(wildcard tiny_compile/*.h tiny_compile/*/*.h))
ROOT = $(DESTDIR)$(PREFIX)
install: all
	@for header in $(PUBLIC); do \
	  install -D -m 644 $$header $(ROOT)/include/$$header || exit 1; done
	install -D -m 644 $(ARCHIVE) $(ROOT)/lib/libtiny_compile.a
	@for program in $(PROGRAMS); do install -D -m 755 $$program $(ROOT)/bin/tc; done
	@mkdir -p $(ROOT)/lib/pkgconfig
	@printf '%s\n' 'prefix=$(abspath $(PREFIX))' 'includedir=$${prefix}/include' \
	  'libdir=$${prefix}/lib' '' 'Name: tiny_compile' \
	  'Description: A tensor compiler in C++20 to read, run and change' \
	  'Version: $(VERSION)' 'Cflags: -I$${includedir}' \
	  'Libs: -L$${libdir} -ltiny_compile -ldl -fopenmp' \
	  > $(ROOT)/lib/pkgconfig/tiny_compile.pc
	@mkdir -p $(ROOT)/lib/cmake/tiny_compile
	@printf '%s\n' 'get_filename_component(prefix "$${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)' \
	  'if(NOT TARGET tiny_compile::tiny_compile)' \
	  '  add_library(tiny_compile::tiny_compile STATIC IMPORTED)' \
	  '  set_target_properties(tiny_compile::tiny_compile PROPERTIES' \
	  '    IMPORTED_LOCATION "$${prefix}/lib/libtiny_compile.a"' \
	  '    INTERFACE_INCLUDE_DIRECTORIES "$${prefix}/include"' \
	  '    INTERFACE_COMPILE_FEATURES cxx_std_20' \
	  '    INTERFACE_LINK_LIBRARIES "dl;-fopenmp")' 'endif()' \
	  > $(ROOT)/lib/cmake/tiny_compile/tiny_compileConfig.cmake
	@printf '%s\n' 'set(PACKAGE_VERSION $(VERSION))' \
	  'if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)' \
	  '  set(PACKAGE_VERSION_EXACT TRUE)' 'endif()' \
	  'if(NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)' \
	  '  set(PACKAGE_VERSION_COMPATIBLE TRUE)' 'endif()' \
	  > $(ROOT)/lib/cmake/tiny_compile/tiny_compileConfigVersion.cmake

INSTALLED := $(abspath $(BUILD)/installed)
check-install: PREFIX := $(INSTALLED)
check-install: install
	@tests/install.sh $(ROOT) $(CXX) $(CXXFLAGS) $(SANITIZERS)
	@rm -rf $(INSTALLED)

# One entry a source: what `make` would run for it.
compile_commands.json: FORCE | $(BUILD)/generated/prelude_text.h
	@{ separator='['; for file in $(sort $(LIBRARY) $(CLI) $(FUZZ) $(BENCH) $(GPU_BENCH) $(SPEED) $(MODELS) $(TESTS) \
	    $(TEST_SOURCES) tests/main.cpp); do \
	  printf '%s\n{"directory": "%s", "file": "%s", "command": "%s"}' "$$separator" '$(CURDIR)' \
	    $$file '$(CXX) $(FLAGS) $(INCLUDES) $(strip $(CATCH_FLAGS)) $(CXXFLAGS) -c '$$file; \
	  separator=,; done; echo; echo ']'; } > $@

FILES ?= $(LIBRARY) $(CLI)
check-tidy: compile_commands.json
	@if command -v clang-tidy >/dev/null; then clang-tidy --quiet -p . \
	    --extra-arg=-include --extra-arg=tests/docs/source_location.h $(FILES) 2>/dev/null; \
	  else echo 'check-tidy: skipped, clang-tidy is missing: apt-get install clang-tidy'; fi

# Doxygen ends with an error where it has a warning.
docs:
	@command -v doxygen >/dev/null || \
	  { echo 'make docs: doxygen is missing: apt-get install doxygen'; exit 1; }
	@mkdir -p $(BUILD)/docs
	@{ cat tests/docs/Doxyfile; echo 'OUTPUT_DIRECTORY = $(BUILD)/docs'; } | doxygen -
	@echo 'build/docs/html/index.html'

clean:
	rm -rf build build-sanitize compile_commands.json

-include lessons/lessons.mk
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
