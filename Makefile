# invertd: `make demo` shows it working, `make test` tries it, `make help` lists the rest.
#
# Everything that is made lies below $(BUILD). Variants have folders of their own (build/asan,
# build/tsan, build/fuzz); generated sources are shared by all of them and lie in build/gen.
# Plain `make` installs nothing; demo, run, test, check, bench, fuzz install what they miss.

BUILD ?= build
GEN := build/gen
PREFIX ?= /usr/local
# All processors, unless -j says otherwise.
JOBS ?= $(shell nproc 2>/dev/null || echo 1)
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(JOBS)
endif
FUZZ_SECONDS ?= 60
SANITIZE ?=

ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := g++
endif

# ---- Flags -------------------------------------------------------------------------------------

LIBRARIES := libmicrohttpd gnutls libuv jansson zlib libdeflate libseccomp libcurl sqlite3
HAVE_LIBRARIES := $(shell pkg-config --exists $(LIBRARIES) lapacke openblas 2>/dev/null && echo yes)
LIBRARY_CFLAGS := $(shell pkg-config --cflags $(LIBRARIES) 2>/dev/null)
LIBRARY_LIBS := $(shell pkg-config --libs $(LIBRARIES) 2>/dev/null)
BLAS_LIBS := -llapacke -lopenblas

WARN := -Wall -Wextra -Wvla -Walloca -Wshadow -Wpointer-arith -Wwrite-strings -Wformat=2 -Werror
WARN_C := $(WARN) -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
HARDEN := -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=3 \
          $(if $(filter x86_64,$(shell uname -m)),-fcf-protection=full) -Wframe-larger-than=16384
ifneq ($(SANITIZE),)
# Fortified calls hide reads and writes from a sanitizer, and its red zones grow the frames.
HARDEN := -fsanitize=$(SANITIZE) -fno-sanitize-recover=undefined -fno-omit-frame-pointer
CONFINE := -DCONFINE_OFF
endif
COMMON := -O2 -g -fPIE -D_GNU_SOURCE -I. -I$(GEN) $(LIBRARY_CFLAGS) $(HARDEN) $(CONFINE)
ALL_CFLAGS = -std=c11 $(COMMON) $(WARN_C) $(CFLAGS)
# The toolkit's headers, as the system's: their warnings are not ours.
CUDA_CFLAGS = $(if $(NVCC),-isystem $(CUDA_HOME)/include)
ALL_CXXFLAGS = -std=c++17 $(COMMON) $(WARN) $(CXXFLAGS)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed $(HARDEN) $(LDFLAGS)
SYSTEM_LIBS := -lseccomp -lstdc++ -lm -lpthread

# ---- Sources -----------------------------------------------------------------------------------

NVCC ?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
NVCC_RELEASE := $(if $(NVCC),$(shell $(NVCC) --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p'))
ifeq ($(shell test 0$(NVCC_RELEASE) -ge 13 && echo yes),)
override NVCC := # none, or too old
endif
WITH_CUDA := $(if $(SANITIZE),,$(NVCC))

MAINS := server/main.c gpu/host/engine/main.c client/main.c callback/main.c
# Fuzz targets are built with clang and need no engine, whose kernels are written for gcc.
FOLDERS := base callback client proto queue queue/% handlers handlers/% server server/% gpu \
           gpu/common gpu/methods gpu/process $(if $(findstring fuzzer,$(SANITIZE)),,gpu/host/%)
# Sources with an ending in folders, in which % stands for every folder in that place.
sources = $(wildcard $(addsuffix /*.$(1),$(subst %,*,$(2))))
C_SOURCES := $(filter-out $(MAINS),$(call sources,c,$(FOLDERS)))
CXX_SOURCES := $(wildcard base/*.cc)
# A source that includes one of these headers is compiled once for each precision: NAME.c becomes
# NAME_f32.o and NAME_f64.o. One that includes range.h becomes an object for each range of orders
# too: NAME_f32_n16.o and so on.
BY_PRECISION := $(shell grep -lE '^.include "gpu/(host|cuda)/base/by_precision\.(h|cuh)"' \
                    gpu/*/*/*.c gpu/*/*/*.cu)
BY_RANGE := $(shell grep -lE '^.include "gpu/cuda/lu_small/range\.cuh"' gpu/cuda/*/*.cu)
# One that includes vector.h becomes an object for each width of vector: NAME_f32_v16.o and so on.
BY_WIDTH := $(shell grep -l '^.include "gpu/host/simd/vector\.h"' gpu/host/*/*.c)
PRECISIONS := f32 f64
WIDTHS := $(foreach p,$(PRECISIONS),$(addprefix $(p)_,v16 v32 v64))
RANGES := $(foreach p,$(PRECISIONS),$(addprefix $(p)_,n16 n24 n32))
precision_flags = $(if $(findstring f32,$(1)),-DREAL_BITS=32)$(if \
                      $(findstring f64,$(1)),-DREAL_BITS=64)
range_flags = $(if $(findstring n16,$(1)),-DORDER_MIN=1 -DORDER_MAX=16)$(if \
                  $(findstring n24,$(1)),-DORDER_MIN=17 -DORDER_MAX=24)$(if \
                  $(findstring n32,$(1)),-DORDER_MIN=25 -DORDER_MAX=32)
width_flags = $(foreach w,16 32 64,$(if $(findstring v$(w),$(1)),-DVECTOR_BYTES=$(w)))
# All of them, for the stamps below.
VARIANT_FLAGS = $(foreach v,$(PRECISIONS) $(RANGES) $(WIDTHS),$(v): $(call precision_flags,$(v)) \
                    $(call range_flags,$(v)) $(call width_flags,$(v)))
# What the objects of a source end in; nothing for one that is compiled once.
variants = $(strip $(if $(filter $(1),$(BY_RANGE)),$(RANGES), \
               $(if $(filter $(1),$(BY_WIDTH)),$(WIDTHS), \
               $(if $(filter $(1),$(BY_PRECISION)),$(PRECISIONS)))))
# The objects of sources, in a folder.
objects = $(foreach s,$(2),$(patsubst %,$(1)/%.o,$(if $(call variants,$(s)), \
              $(addprefix $(basename $(s))_,$(call variants,$(s))),$(basename $(s)))))
# gen/openapi.o, gen/login_page.o, gen/live_page_*.o: documents that the daemon serves.
OBJECTS := $(call objects,$(BUILD)/obj,$(C_SOURCES) $(CXX_SOURCES)) $(BUILD)/obj/gen/openapi.o \
           $(BUILD)/obj/gen/login_page.o $(BUILD)/obj/gen/live_page_css.o \
           $(BUILD)/obj/gen/live_page_js.o
ENGINE_OBJECTS := $(call objects,$(BUILD)/obj, \
                      $(wildcard base/*.c base/*.cc gpu/*.c gpu/common/*.c gpu/methods/*.c \
                          gpu/process/*.c))
# Files at any depth below a folder. $(2): what their names are like.
below = $(sort $(shell find $(1) -name '$(2)'))
# What is in gpu/cuda and in tests/simt runs CUDA code on the CPU: see SIMT.
UNIT_SOURCES := $(call below,tests/unit,test_*.c) $(call below,tests/unit,test_*.cu) \
                $(call below,tests/simt/unit,test_*.cu)
UNIT_HELPERS := $(filter-out $(UNIT_SOURCES) tests/unit/gpu/cuda/%, \
                    $(call below,tests/unit,*.c))
UNIT_HELPER_OBJECTS := $(UNIT_HELPERS:%.c=$(BUILD)/obj/%.o)
SUPPORT_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/support/*.c))
# A disk in memory that loses, for tests of what must survive.
SIM_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/sim/*.c))
SIMT_UNIT_HELPERS = $(SUPPORT_OBJECTS) $(patsubst %.c,$(SIMT)/obj/%.o, \
                        $(filter-out $(UNIT_SOURCES),$(call below,tests/unit/gpu/cuda,*.c))) \
                    $(patsubst %,$(BUILD)/obj/tests/unit/gpu/host/%.o, \
                        matrices bands run bed child mixed)
helpers_in = $(foreach o,$(UNIT_HELPER_OBJECTS),$(if $(filter $(1)/,$(dir $(o))),$(o)))
# Those of a test in folder $(1) of tests/unit: of its folder, and of the one above.
helpers_for = $(call helpers_in,$(BUILD)/obj/tests/unit/$(1)) \
              $(call helpers_in,$(BUILD)/obj/tests/unit/$(patsubst %/,%,$(dir $(1)))) \
              $(if $(filter queue/jobs,$(1)),$(SIM_OBJECTS))
GPU_TESTS := $(patsubst tests/device/%.c,$(BUILD)/device/%,$(call below,tests/device,test_*.c))
GPU_TEST_HELPERS := $(patsubst %.c,$(BUILD)/obj/%.o, \
                        $(filter-out $(GPU_TESTS:$(BUILD)/%=tests/%.c), \
                            $(call below,tests/device,*.c))) \
                    $(call helpers_in,$(BUILD)/obj/tests/unit/gpu/host) $(SUPPORT_OBJECTS)
# The host engine's tests that any engine must pass; and the same for the CUDA engine on the CPU.
ENGINE_TESTS := $(addprefix $(BUILD)/unit/gpu/host/test_, \
                    contract gallery symmetric truth both_sides)
SIMT_ENGINE_TESTS := $(ENGINE_TESTS:$(BUILD)/unit/gpu/host/%=$(BUILD)/unit/simt/%)
# Larger orders than INVERTD_ENGINE_N_MAX (see tests/unit/gpu/host/run.c) would take a CPU too long.
# Chains of updates take the host engine seconds, and those of a sanitizer's build minutes.
HOST_CHAIN_TEST := $(if $(SANITIZE),,$(BUILD)/unit/gpu/host/test_chain)
# A sanitizer would report the bad address that is used on purpose.
SIMT_FAULT_TEST := $(if $(SANITIZE),,$(BUILD)/unit/simt/test_faults)
unit_programs = $(patsubst tests/simt/unit/%,$(1)/unit/simt/%, \
                    $(patsubst tests/unit/%,$(1)/unit/%,$(basename $(UNIT_SOURCES)))) \
                $(patsubst $(BUILD)/%,$(1)/%,$(SIMT_ENGINE_TESTS) \
                    $(if $(2),,$(HOST_CHAIN_TEST) $(SIMT_FAULT_TEST)))
UNIT_PROGRAMS := $(call unit_programs,$(BUILD))
FUZZ_SOURCES := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_HELPER_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o, \
                           $(filter-out $(FUZZ_SOURCES),$(wildcard tests/fuzz/*.c)))
FUZZ_PROGRAMS := $(FUZZ_SOURCES:tests/fuzz/%.c=$(BUILD)/%)
fault_objects = $(call objects,$(BUILD)/faults/obj,$(wildcard gpu/process/*.c $(1)))
BENCH_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(wildcard bench/host/*.c bench/http/*.c))

# CUDA: machine code for sm_90 and PTX for later devices; CUDA_ARCHS=100 adds another. Without
# nvcc, `all` leaves the engine of the GPUs out; so do builds for sanitizers, which cannot run it.
CUDA_ARCHS ?=
CUDA_CODE := $(foreach a,$(sort 90 $(CUDA_ARCHS)),-gencode=arch=compute_$(a),code=sm_$(a)) \
             -gencode=arch=compute_90,code=compute_90
# The shapes of the kernels: the table of an H200 for any GPU; `make tune` writes another one.
TUNING ?= gpu/cuda/tuning/h200/lu_small.cuh
NVCC_SPEED ?= # '-Ofc max' compiles in a third of the time what need not be fast
NVCC_FLAGS := -std=c++17 -O3 $(NVCC_SPEED) $(CUDA_CODE) -DCUDA__TUNING=\"$(TUNING)\" -I. -I$(GEN) \
              -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wno-missing-field-initializers,-fPIE \
              $(addprefix -Xcompiler ,$(filter -fcf% -fstack-clash%,$(HARDEN)))
CUDA_HOME := $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
CUDA_KERNELS := $(wildcard gpu/cuda/*/*.cu)
CUDA_SOURCES := $(wildcard gpu/cuda/*/*.c)
CUDA_OBJECTS := $(call objects,$(BUILD)/obj,$(CUDA_KERNELS))
CUDA_ENGINE_OBJECTS := $(call objects,$(BUILD)/obj,$(CUDA_SOURCES))
# As nvcc links: the runtime statically, so that the engine needs the driver's library alone, which
# the runtime opens by itself; and cuBLAS where it is found (gpu/cuda/gemm/blas.h): in the
# toolkit that it was built with, or where the system looks.
CUDA_LIBS := -L$(CUDA_HOME)/lib64 -Wl,-rpath,$(CUDA_HOME)/lib64 -lcudart_static -ldl -lrt
# tune.cu is the program that tune.py builds.
GPU_BENCH_OBJECTS := $(patsubst %.cu,$(BUILD)/obj/%.o, \
                         $(filter-out %/tune.cu,$(wildcard bench/gpu/*.cu)))
# What bench/gpu/ablate.cu takes the place of, to leave paths of the product out.
GPU_BENCH_WRAPPED := cuda_product_scratch cuda__ism_launch_f32 cuda__ism_launch_f64 \
                     cudaDeviceGetAttribute cudaLaunchKernelExC
# The SIMT stand-in (tests/simt): the same sources by g++, for the CPU, for tests. Few
# optimisations, because it is compiled more often than it is waited for; of UBSan's checks the one
# that matters most on a device, as all of them take minutes to compile.
SIMT := $(BUILD)/simt
SIMT_OBJECTS := $(patsubst %,$(SIMT)/obj/%.o,$(basename $(wildcard tests/simt/*.c tests/simt/*.cc)))
SIMT_KERNELS := $(call objects,$(SIMT)/obj,$(CUDA_KERNELS))
SIMT_ENGINE := $(call objects,$(SIMT)/obj,$(CUDA_SOURCES))
# fma(), of which kernels have many, as an instruction where this CPU has it.
SIMT_FMA := $(if $(shell grep -w fma /proc/cpuinfo),-mfma -ffp-contract=off)
SIMT_CXXFLAGS = -Og -g1 $(SIMT_FMA) \
                -fno-extern-tls-init -DCUDA__TUNING=\"$(TUNING)\" -Wno-unknown-pragmas \
                -Wno-missing-field-initializers -Wno-shadow -Wno-frame-larger-than \
                $(if $(findstring undefined,$(SANITIZE)), \
                    -fno-sanitize=undefined -fsanitize=alignment)
GENERATED := $(addprefix $(GEN)/,method_list.inc method_algorithms.inc cuda_method_list.inc \
                 version.h)

PROGRAMS := $(addprefix $(BUILD)/,invertd invertd-host invertd-post invert \
                $(if $(WITH_CUDA),invertd-cuda))
FAULTS := $(addprefix $(BUILD)/faults/,invertd-host cuda-double)
CUDA_FAULTS := $(if $(WITH_CUDA),$(BUILD)/faults/invertd-cuda)

# ---- What a person types -----------------------------------------------------------------------

# A second make reads the libraries' flags anew after scripts/deps has installed them.
AGAIN = $(MAKE) --no-print-directory

# demo, run, test and check leave the CUDA engine out where no GPU would run it, unless NVCC was
# asked for or there is such an engine already: an older one with a newer daemon would not do.
WITHOUT_GPU = $(if $(filter file,$(origin NVCC)),$(if $(wildcard $(BUILD)/invertd-cuda),,$(if \
                  $(and $(WITH_CUDA),$(shell scripts/gpu-here 2>&1)),NVCC=)))
WITHOUT_GPU_NOTICE = $(if $(WITHOUT_GPU), \
                         echo "no GPU here: the CUDA engine is left out; make builds it")
# Said once, before the first nvcc of the engine.
CUDA_NOTICE = $(if $(CUDA_SAID),,$(if $(filter $(CUDA_OBJECTS),$@),$(eval CUDA_SAID := 1)$(info \
                  compiling the CUDA engine: $(words $(CUDA_OBJECTS)) files at most, some minutes; \
                  make NVCC= leaves it out)))

.PHONY: all help demo run test check golden bench fuzz asan tsan install uninstall deps clean
.PHONY: soak cuda tune test-gpu test-gpu-sanitize bench-gpu gpu-tests-built tests-built docs FORCE
.PHONY: unit faults mutations test-accuracy test-howto demo-program bench-programs fuzz-programs
.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:

all: $(PROGRAMS) ## build the daemon, its client, the host engine and, with nvcc, the CUDA engine

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 25
	@$(if $(NVCC),,echo "nvcc of CUDA 13 is not found here: the CUDA engine is left out.")

demo: ## install what is missing, build, invert matrices of every method over HTTP, explain, stop
	@scripts/deps build
	@$(WITHOUT_GPU_NOTICE)
	@+$(AGAIN) $(WITHOUT_GPU) all demo-program
	@$(BUILD)/invertd-demo $(BUILD)/invertd

run: ## install what is missing, build, serve on 127.0.0.1:8000 until Ctrl-C
	@scripts/deps build
	@$(WITHOUT_GPU_NOTICE)
	@+$(AGAIN) $(WITHOUT_GPU) all
	@scripts/run $(BUILD)/invertd

test: ## install what is missing, build, run every test that needs no GPU
	@scripts/deps build test python
	@$(WITHOUT_GPU_NOTICE)
	@+$(AGAIN) $(WITHOUT_GPU) tests-built
	@scripts/suite $(BUILD) $(UNIT_PROGRAMS)

check: ## formatting, static analysis, headers, layers, symbols, limits, generated documentation
	@scripts/deps build test check
	@$(WITHOUT_GPU_NOTICE)
	@+$(AGAIN) $(WITHOUT_GPU) all tests-built
	@scripts/check/all $(BUILD)

bench: ## measure the HTTP path and the host engine next to their peers; results go to bench/results
	@scripts/deps build bench
	@+$(AGAIN) all bench-programs
	@for b in http/run host/small host/large host/tridiagonal host/ism host/iterative; do \
	    bench/$$b $(BUILD) || exit 1; done

cuda: $(BUILD)/invertd-cuda $(BUILD)/bench/gpu ## build the CUDA engine and its bench (needs nvcc)

test-gpu: ## try the CUDA kernels and the CUDA engine on the GPU of this machine
	@scripts/gpu-here
	@scripts/deps build unit
	@+$(AGAIN) all gpu-tests-built
	@scripts/test-gpu $(BUILD) $(ENGINE_TESTS) $(GPU_TESTS)

test-gpu-sanitize: ## the kernels under compute-sanitizer's four tools
	@scripts/gpu-here
	@+$(AGAIN) cuda
	@scripts/sanitize-gpu $(BUILD)

tune: ## find the kernels' fastest shapes on this machine's GPU; says first how long it takes
	@scripts/gpu-here
	@test -n "$(NVCC)" || { echo "make: nvcc is missing or older than CUDA 13" >&2; exit 1; }
	@bench/gpu/tune.py --nvcc $(NVCC) --build $(BUILD)/tune --base $(TUNING) $(TUNE)

bench-gpu: ## measure the CUDA kernels next to a copy and cuBLAS; results go to bench/results
	@scripts/gpu-here
	@+$(AGAIN) cuda
	@$(BUILD)/bench/gpu --time --results bench/results \
	    --commit $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)
	@bench/gpu/report.py bench/results

golden: ## compare answers with recorded hashes: each CPU kernel family, the kernels of a GPU too
	@scripts/deps build test python
	@$(WITHOUT_GPU_NOTICE)
	@+$(AGAIN) $(WITHOUT_GPU) all $(SIMT)/invertd-cuda
	@.venv/bin/python tests/golden/golden.py --build $(BUILD) --engine all

fuzz: ## FUZZ_SECONDS (60) of each fuzz target under ASan and UBSan
	@scripts/deps build fuzz
	@+$(AGAIN) BUILD=build/fuzz CC=clang CXX=clang++ SANITIZE=fuzzer-no-link,address,undefined \
	    fuzz-programs
	@scripts/fuzz build/fuzz $(FUZZ_SECONDS) $(FUZZ_SOURCES:tests/fuzz/%.c=%)

mutations: ## MUTATIONS (1000000) mutated requests to the daemon, over sockets
	@scripts/deps build test python
	@+$(AGAIN) $(WITHOUT_GPU) all
	@INVERTD_BUILD=$(BUILD) INVERTD_MUTATIONS=$${MUTATIONS:-1000000} \
	    .venv/bin/python -m pytest -qs -p no:cacheprovider tests/e2e/door/test_mutations.py

soak: ## kill the front SOAK (1000) times under load: no job that was taken is lost or done twice
	@scripts/deps build test python
	@+$(AGAIN) $(WITHOUT_GPU) all
	@INVERTD_BUILD=$(BUILD) INVERTD_KILLS=$${SOAK:-1000} \
	    .venv/bin/python -m pytest -qs -p no:cacheprovider tests/e2e/jobs/test_kills.py

asan: ## the whole suite against an ASan and UBSan build
	@scripts/deps build test python
	@+$(AGAIN) BUILD=build/asan SANITIZE=address,undefined tests-built
	@INVERTD_SANITIZER=address scripts/suite build/asan $(call unit_programs,build/asan,sanitized)

tsan: ## the whole suite against a TSan build
	@scripts/deps build test python
	@+$(AGAIN) BUILD=build/tsan SANITIZE=thread tests-built
	@INVERTD_SANITIZER=thread scripts/suite build/tsan $(call unit_programs,build/tsan,sanitized)

unit: ## build and run the unit tests alone
	@scripts/deps build unit
	@+$(AGAIN) $(UNIT_PROGRAMS)
	@scripts/unit $(UNIT_PROGRAMS)

test-accuracy: ## both residuals of many more matrices, to n = 2048 (INVERTD_ENGINE's, if set)
	@scripts/deps build unit
	@+$(AGAIN) $(BUILD)/unit/gpu/host/test_both_sides
	@scripts/accuracy $(BUILD)/unit/gpu/host/test_both_sides

test-howto: ## add a method as docs/howto/method.md does, in a copy of this tree, and try it
	@scripts/deps build unit
	@tests/howto

faults: $(FAULTS) $(CUDA_FAULTS) ## engines with faults for tests: build/faults/invertd-host, -cuda

docs: ## write the generated parts of docs/ and README.md anew
	@+$(AGAIN) all
	@scripts/docs $(BUILD)

deps: ## install everything that any target needs
	@scripts/deps build test python check bench fuzz

# It builds nothing, so that root compiles nothing and finds the engines that the builder wanted.
install: ## copy what was built, and documentation, to DESTDIR and PREFIX (/usr/local)
	@scripts/install $(BUILD) '$(DESTDIR)$(PREFIX)'

uninstall: ## remove what make install has copied there
	@scripts/install --remove '$(DESTDIR)$(PREFIX)'

clean: ## remove everything that was built
	rm -rf build $(if $(filter-out build build/%,$(BUILD)),$(BUILD))

# V=1 shows the commands whole.
say = $(if $(V),,@printf '  %-4s %s\n' $(1) $@;)

# ---- Programs ----------------------------------------------------------------------------------

demo-program: $(BUILD)/invertd-demo
bench-programs: $(BENCH_PROGRAMS)
fuzz-programs: $(FUZZ_PROGRAMS)
# Those in need of a GPU are compiled too, and not run.
tests-built: $(PROGRAMS) demo-program $(FAULTS) $(UNIT_PROGRAMS) $(if $(SANITIZE),,$(GPU_TESTS))
gpu-tests-built: cuda $(CUDA_FAULTS) $(ENGINE_TESTS) $(GPU_TESTS)

# An archive of objects, made anew when the list of them changes, which lies next to it: what is
# deleted leaves it.
define archive
$(1): $(2) $(1).members
	@rm -f $$@
	$$(call say,AR)$$(AR) rcs $$@ $$(filter %.o,$$^)
$(1).members: FORCE
	@$$(call write_if_changed,printf '%s\n' $(2))
endef
$(eval $(call archive,$(BUILD)/libinvertd.a,$(OBJECTS)))
# What every engine is made of, its own folder apart.
$(eval $(call archive,$(BUILD)/libinvertd-engine.a,$(ENGINE_OBJECTS)))
$(eval $(call archive,$(BUILD)/libinvertd-cuda.a,$(CUDA_OBJECTS)))
$(eval $(call archive,$(SIMT)/libinvertd-cuda.a,$(SIMT_KERNELS) $(SIMT_OBJECTS)))

# The front links no BLAS; `make check` looks.
$(BUILD)/invertd: $(BUILD)/obj/server/main.o
$(BUILD)/invertd-post: $(BUILD)/obj/callback/main.o
$(BUILD)/invert: $(BUILD)/obj/client/main.o
$(BUILD)/invertd $(BUILD)/invertd-post $(BUILD)/invert: $(BUILD)/libinvertd.a
	$(call say,LINK)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $< $(LIBRARY_LIBS) $(SYSTEM_LIBS)

$(BUILD)/invertd-host: $(BUILD)/obj/gpu/host/engine/main.o $(BUILD)/libinvertd.a
	$(call say,LINK)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(BLAS_LIBS) $(SYSTEM_LIBS)

$(BUILD)/faults/invertd-host: $(call fault_objects,gpu/host/*/*.c) $(BUILD)/libinvertd.a
	$(call say,LINK)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(BLAS_LIBS) $(SYSTEM_LIBS)

# The host engine in the guise of a CUDA engine.
$(BUILD)/faults/cuda-double: $(BUILD)/faults/obj/tests/doubles/cuda_double.o \
                             $(filter-out %/main.o,$(call fault_objects,gpu/host/*/*.c)) \
                             $(BUILD)/libinvertd.a
	$(call say,LINK)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(BLAS_LIBS) $(SYSTEM_LIBS)

$(BUILD)/invertd-cuda: $(CUDA_ENGINE_OBJECTS) $(BUILD)/libinvertd-cuda.a \
                       $(BUILD)/libinvertd-engine.a
	$(call say,LINK)$(CXX) $(ALL_LDFLAGS) -o $@ $^ $(CUDA_LIBS) $(SYSTEM_LIBS)

$(BUILD)/faults/invertd-cuda: $(call fault_objects,gpu/cuda/*/*.c gpu/cuda/engine/fault.cu) \
                              $(BUILD)/libinvertd-cuda.a $(BUILD)/libinvertd-engine.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CXX) $(ALL_LDFLAGS) -o $@ $^ $(CUDA_LIBS) $(SYSTEM_LIBS)

.SECONDEXPANSION:
$(BUILD)/unit/%: $(BUILD)/obj/tests/unit/%.o $$(call helpers_for,$$(*D)) $(SUPPORT_OBJECTS) \
                 $(BUILD)/libinvertd.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(LIBRARY_LIBS) $(BLAS_LIBS) $(SYSTEM_LIBS)

# The CUDA engine and its kernels on the CPU.
$(SIMT)/invertd-cuda: $(SIMT_ENGINE) $(SIMT)/libinvertd-cuda.a $(BUILD)/libinvertd-engine.a
	$(call say,LINK)$(CXX) $(ALL_LDFLAGS) -o $@ $^ $(SYSTEM_LIBS)

$(SIMT)/faults/invertd-cuda: $(call objects,$(SIMT)/faults/obj,$(CUDA_SOURCES)) \
                             $(SIMT)/faults/obj/gpu/cuda/engine/fault.o \
                             $(filter $(BUILD)/faults/obj/gpu/process/%,$(call fault_objects)) \
                             $(SIMT)/libinvertd-cuda.a $(BUILD)/libinvertd-engine.a
	$(call say,LINK)$(CXX) $(ALL_LDFLAGS) -o $@ $^ $(SYSTEM_LIBS)

define simt_unit
$(filter-out $(SIMT_ENGINE_TESTS) $(SIMT_FAULT_TEST), \
    $(filter $(BUILD)/unit/$(1)/%,$(UNIT_PROGRAMS))): \
    $(BUILD)/unit/$(1)/%: $(SIMT)/obj/$(2)/%.o $(SIMT_UNIT_HELPERS) \
                      $(filter-out %/main.o,$(SIMT_ENGINE)) $(SIMT)/libinvertd-cuda.a \
                      $(BUILD)/libinvertd.a
	@mkdir -p $$(@D)
	$$(call say,LINK)$$(CXX) $$(ALL_LDFLAGS) -o $$@ $$^ -lcmocka $$(BLAS_LIBS) $$(SYSTEM_LIBS)
endef
$(eval $(call simt_unit,gpu/cuda,tests/unit/gpu/cuda))
$(eval $(call simt_unit,simt,tests/simt/unit))

# The bench's judgement of the small kernels, without its device.
$(BUILD)/unit/gpu/cuda/test_small: \
    $(patsubst %,$(SIMT)/obj/bench/gpu/%.o,lu_small_check judge matrices)

# A test that starts the engine which INVERTD_ENGINE names. $(1): what is set for it; $(2): the way
# up to $(BUILD).
engine_test = @mkdir -p $(@D) && \
    printf '\#!/bin/sh\nbuild=$$(realpath "$$(dirname "$$0")/$(2)")\n%s exec "$$build/%s"\n' \
        '$(1)' $(<:$(BUILD)/%=%) >$@ && chmod +x $@

$(SIMT_ENGINE_TESTS): $(BUILD)/unit/simt/%: $(BUILD)/unit/gpu/host/% $(SIMT)/invertd-cuda
$(SIMT_FAULT_TEST): $(BUILD)/device/test_faults $(SIMT)/invertd-cuda $(SIMT)/faults/invertd-cuda
$(SIMT_ENGINE_TESTS) $(SIMT_FAULT_TEST):
	$(call engine_test,INVERTD_ENGINE_N_MAX=$${INVERTD_ENGINE_N_MAX:-50} \
	    INVERTD_ENGINE=$$build/simt/invertd-cuda,../..)
$(HOST_CHAIN_TEST): $(BUILD)/device/test_chain $(BUILD)/invertd-host
	$(call engine_test,INVERTD_ENGINE=$$build/invertd-host,../../..)

$(BUILD)/device/%: $(BUILD)/obj/tests/device/%.o $(GPU_TEST_HELPERS) $(BUILD)/libinvertd.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(BLAS_LIBS) $(SYSTEM_LIBS)

$(BUILD)/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(FUZZ_HELPER_OBJECTS) $(BUILD)/libinvertd.a
	$(call say,LINK)$(CXX) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBRARY_LIBS) $(SYSTEM_LIBS)

$(BUILD)/invertd-demo: $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard demo/*.c))
	$(call say,LINK)$(CC) $(ALL_LDFLAGS) -o $@ $^ -ljansson $(SYSTEM_LIBS)

$(BUILD)/bench/host/%: BENCH_LIBS = $(BLAS_LIBS)
$(BUILD)/bench/%: $(BUILD)/obj/bench/%.o $(BUILD)/libinvertd.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(BENCH_LIBS) $(LIBRARY_LIBS) $(SYSTEM_LIBS)

# cuBLAS and cuSOLVER are peers, and cuSPARSE where the toolkit has it.
$(BUILD)/bench/gpu: $(GPU_BENCH_OBJECTS) $(filter-out %/main.o,$(CUDA_ENGINE_OBJECTS)) \
                    $(BUILD)/libinvertd-cuda.a $(BUILD)/libinvertd-engine.a
	@mkdir -p $(@D)
	$(call say,LINK)$(NVCC) $(NVCC_FLAGS) -Xlinker -pie $(GPU_BENCH_WRAPPED:%=-Xlinker --wrap=%) \
	    -o $@ $^ -lseccomp -lcublas -lcusolver $(if $(wildcard $(CUDA_HOME)/*/cusparse.h),-lcusparse)

# ---- Objects -----------------------------------------------------------------------------------

write_if_changed = mkdir -p $(@D); $(1) >$@.$$$$; \
    if cmp -s $@.$$$$ $@; then rm $@.$$$$; else mv $@.$$$$ $@; fi

# Holds the compiler and its flags: objects are made anew when they change.
STAMP := $(BUILD)/flags
$(STAMP): FORCE
	@test -n "$(HAVE_LIBRARIES)" || \
	    { echo "make: libraries are missing; try: scripts/deps build" >&2; exit 1; }
	@$(call write_if_changed,echo '$(CC) $(ALL_CFLAGS) $(CXX) $(ALL_CXXFLAGS) $(ALL_LDFLAGS) \
	    $(VARIANT_FLAGS) $(CUBLAS_DOUBLE_FLAGS)')

CUDA_C_OBJECTS := $(CUDA_ENGINE_OBJECTS) $(call objects,$(BUILD)/faults/obj,$(CUDA_SOURCES))
$(CUDA_C_OBJECTS): private ALL_CFLAGS += $(CUDA_CFLAGS)
$(CUDA_C_OBJECTS): $(BUILD)/cuda-flags

SIMT_STAMP := $(SIMT)/flags
$(SIMT_STAMP): FORCE
	@$(call write_if_changed,echo '$(SIMT_COMPILE) $(VARIANT_FLAGS)')

GPU_BENCH_FLAGS := --extended-lambda
$(GPU_BENCH_OBJECTS): private NVCC_FLAGS += $(GPU_BENCH_FLAGS)
CUDA_STAMP := $(BUILD)/cuda-flags
$(CUDA_STAMP): FORCE
	@test -n "$(NVCC)" || { echo "make: nvcc is missing or older than CUDA 13;" \
	    "install the CUDA toolkit" >&2; exit 1; }
	@$(call write_if_changed,echo '$(NVCC) $(NVCC_FLAGS) $(GPU_BENCH_FLAGS) $(CUDA_CFLAGS) \
	    $(VARIANT_FLAGS)')

SIMT_COMPILE = $(CXX) -x c++ -Itests/simt -include tests/simt/device.cuh $(ALL_CXXFLAGS) \
               $(SIMT_CXXFLAGS)
simt_cxx = $(SIMT_COMPILE) -MMD -MP -c -o $@ $<
# Few of the engines' sources know of faults: where the preprocessor sees no difference, the
# object without them serves. $(1): the compiler with its flags; $(2): that object.
or_copy = if test "$$($(1) -E $< | cksum)" = \
              "$$($(1) -DENGINE_FAULTS -E -MMD -MP -MT $@ -MF $(@:.o=.d) $< | cksum)"; \
          then cp $(2) $@; else $(1) -DENGINE_FAULTS -MMD -MP -c -o $@ $<; fi

# The stand-in for cuBLAS does most of what some tests compute.
CUBLAS_DOUBLE_FLAGS := -O3
$(SIMT)/obj/tests/simt/cublas.o: private ALL_CFLAGS += $(CUBLAS_DOUBLE_FLAGS)

# The rules of C and CUDA C++. $(1): nothing, or what the objects of one precision and range of
# orders end in; $(2): the flags that say so.
define object_rules
$(BUILD)/obj/%$(1).o: %.c $(STAMP) | $(GENERATED)
	@mkdir -p $$(@D)
	$$(call say,CC)$$(CC) $$(ALL_CFLAGS) $(2) -MMD -MP -c -o $$@ $$<

$(SIMT)/obj/%$(1).o: %.c $(STAMP) | $(GENERATED)
	@mkdir -p $$(@D)
	$$(call say,CC)$$(CC) -Itests/simt $$(ALL_CFLAGS) $(2) -MMD -MP -c -o $$@ $$<

$(BUILD)/obj/%$(1).o: %.cu $(CUDA_STAMP) | $(GENERATED)
	@$$(CUDA_NOTICE)mkdir -p $$(@D)
	$$(call say,NVCC)$$(NVCC) $$(NVCC_FLAGS) $(2) -MMD -MP -MF $$(@:.o=.d) -c -o $$@ $$<

$(SIMT)/obj/%$(1).o: %.cu $(SIMT_STAMP) | $(GENERATED)
	@mkdir -p $$(@D)
	$$(call say,CXX)$$(simt_cxx) $(2)

$(SIMT)/faults/obj/%$(1).o: %.c $(SIMT)/obj/%$(1).o $(STAMP) | $(GENERATED)
	@mkdir -p $$(@D)
	$$(call say,CC)$$(call or_copy,$$(CC) -Itests/simt $$(ALL_CFLAGS) $(2),$(SIMT)/obj/$$*$(1).o)

$(BUILD)/faults/obj/gpu/%$(1).o: gpu/%.c $(BUILD)/obj/gpu/%$(1).o $(STAMP) | $(GENERATED)
	@mkdir -p $$(@D)
	$$(call say,CC)$$(call or_copy,$$(CC) $$(ALL_CFLAGS) $(2),$(BUILD)/obj/gpu/$$*$(1).o)

endef
$(eval $(call object_rules,,))
$(foreach v,$(PRECISIONS) $(RANGES) $(WIDTHS),$(eval $(call object_rules,_$(v), \
    $(call precision_flags,$(v)) $(call range_flags,$(v)) $(call width_flags,$(v)))))

$(BUILD)/obj/%.o: %.cc $(STAMP) | $(GENERATED)
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(ALL_CXXFLAGS) -MMD -MP -c -o $@ $<

$(SIMT)/obj/tests/simt/%.o: tests/simt/%.cc $(SIMT_STAMP)
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) -Itests/simt $(ALL_CXXFLAGS) $(SIMT_FMA) -MMD -MP -c -o $@ $<

$(SIMT)/faults/obj/%.o: %.cu $(SIMT_STAMP) | $(GENERATED)
	@mkdir -p $(@D)
	$(call say,CXX)$(simt_cxx) -DENGINE_FAULTS

$(BUILD)/faults/obj/gpu/cuda/engine/fault.o: gpu/cuda/engine/fault.cu $(CUDA_STAMP) | $(GENERATED)
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) -DENGINE_FAULTS -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(BUILD)/faults/obj/%.o: %.c $(STAMP) | $(GENERATED)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) -DENGINE_FAULTS -MMD -MP -c -o $@ $<

$(BUILD)/obj/gen/%.o: $(GEN)/%.c $(STAMP)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# ---- Generated sources -------------------------------------------------------------------------

# The registry of methods is the folder's listing, in the order of the names. Written only when it
# has changed, so that a new method is noticed and nothing is compiled in vain.
METHODS := $(sort $(patsubst gpu/methods/%.c,%,$(wildcard gpu/methods/*.c)))
$(GEN)/method_list.inc: FORCE
	@$(call write_if_changed,printf 'METHOD(%s)\n' $(METHODS))

# Every METHOD_ALGORITHM_NAME in a descriptor is one: ALGORITHM(NAME, "name").
LIST_ALGORITHMS = grep -oh 'METHOD_ALGORITHM_[A-Z0-9_]*' gpu/methods/*.c | LC_ALL=C sort -u | \
    sed 's/METHOD_ALGORITHM_\(.*\)/ALGORITHM(\1, "\L\1")/'
$(GEN)/method_algorithms.inc: FORCE
	@$(call write_if_changed,$(LIST_ALGORITHMS))

# The methods that the CUDA engine has rows for: a cuda_method_NAME[] each.
LIST_CUDA_METHODS = \
    sed -n 's/^const struct cuda_method cuda_method_\([a-z0-9_]*\)\[\].*/METHOD(\1)/p' \
    gpu/cuda/*/*.c gpu/cuda/*/*.cu | LC_ALL=C sort
$(GEN)/cuda_method_list.inc: FORCE
	@$(call write_if_changed,$(LIST_CUDA_METHODS))

# Changes with each commit: only the programs' main files include it.
$(GEN)/version.h: FORCE
	@$(call write_if_changed,printf '#define INVERTD_VERSION "%s"\n' "$$(scripts/version)")

$(GEN)/openapi.c: docs/openapi.yaml
$(GEN)/login_page.c: handlers/login_page.html
$(GEN)/live_page_css.c: handlers/live_page.css
$(GEN)/live_page_js.c: handlers/live_page.js
$(GEN)/openapi.c $(GEN)/login_page.c $(GEN)/live_page_css.c $(GEN)/live_page_js.c:
	@mkdir -p $(@D) && scripts/embed $< >$@

-include $(shell find $(BUILD)/obj $(BUILD)/faults $(SIMT) -name '*.d' 2>/dev/null)
