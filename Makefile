# heed: build, test, train. `make help` lists what there is.
#
#   apt-get install -y g++ make pkg-config libopenblas-openmp-dev libcli11-dev nlohmann-json3-dev doctest-dev

CXX      ?= g++
MARCH    ?= -march=native
PREFIX   ?= /usr/local
DESTDIR  ?=
BUILD    ?= build
# OpenBLAS's OpenMP flavour, by its own folder: where the pthread flavour is installed too, a plain -lopenblas may find that one, and its
# threads beside OpenMP's make a training step ten times slower.
TRIPLET   := $(shell $(CXX) -print-multiarch)
BLAS_DIR  ?= /usr/lib/$(TRIPLET)/openblas-openmp
BLAS_LIBS ?= -L$(BLAS_DIR) -Wl,-rpath,$(BLAS_DIR) -lopenblas
BLAS_INCLUDES ?= -I/usr/include/$(TRIPLET)/openblas-openmp

MAKEFLAGS += -r -j$(shell nproc)
OPTIMIZE  ?= $(LEVEL) $(MARCH)
LEVEL      = -O2
CXXFLAGS  ?=
FLAGS     := -std=c++20 -Wall -Wextra -Wpedantic -fopenmp -I. $(BLAS_INCLUDES)
COMPILE    = $(CXX) $(FLAGS) $(OPTIMIZE) $(CXXFLAGS) $(SANITIZE) -MMD -MP -x c++ -c $< -o $@
LINK       = $(CXX) -fopenmp $(CXXFLAGS) $(SANITIZE) $(if $(WHOLE), -Wl$(comma)--whole-archive $^ -Wl$(comma)--no-whole-archive, $^) $(BLAS_LIBS) -o $@
comma     := ,

# The kernels by nvcc too, for `make cuda`: for these GPUs (compute capabilities), and as PTX of the last for newer ones.
CUDA_HOME ?= /usr/local/cuda
NVCC      ?= $(or $(shell command -v nvcc), $(CUDA_HOME)/bin/nvcc)
# nvcc says where its toolkit lies (the one in the PATH may be a link or a script); Debian's package has the libraries where ld looks.
CUDA_TOP   = $(shell $(NVCC) --dryrun -x cu /dev/null 2>&1 | sed -n 's/^.. TOP=//p')
CUDA_DIR   = $(patsubst %/libcublas.so,%, $(firstword $(wildcard $(CUDA_TOP:%=%/lib64/libcublas.so) $(CUDA_TOP:%=%/lib/libcublas.so))))
CUDA_LIBS ?= $(foreach dir, $(realpath $(CUDA_DIR)), -L$(dir) -Wl,-rpath,$(dir)) -lcublas -lcudart
ARCH      ?= 80 90
CUDA_HOST ?= $(CXX)
NVCC_FLAGS = -std=c++20 -O3 -I. -ccbin $(CUDA_HOST) $(foreach arch,$(ARCH),-gencode arch=compute_$(arch),code=sm_$(arch)) \
             -gencode arch=compute_$(lastword $(ARCH)),code=compute_$(lastword $(ARCH)) \
             -Werror all-warnings -Xptxas -Werror,-warn-spills -Xcompiler -Wall,-Wextra,-Werror
ifdef WITH_CUDA
NVCC_OBJECTS := $(patsubst cuda/%.cu,$(BUILD)/nvcc/%.o,$(wildcard cuda/*.cu))
FLAGS        += -DHEED_WITH_CUDA
BLAS_LIBS    += $(CUDA_LIBS)
endif

PROGRAM_SOURCES := train/heed.cpp train/startup.cpp $(wildcard train/command_*.cpp)
LIBRARY_SOURCES := $(wildcard tensor/*.cpp autograd/*.cpp autograd/*/*.cpp nn/*.cpp cuda/*.cu cuda/emulator/*.cpp) \
                   $(filter-out $(PROGRAM_SOURCES), $(wildcard train/*.cpp))
JSON_SOURCES    := train/json.cpp train/safetensors_header.cpp
ALONE           := train/heed.cpp $(JSON_SOURCES) tensor/reference.cpp
TEST_SOURCES    := $(wildcard tests/*.cpp)
EXAMPLES        := $(basename $(wildcard examples/*.cpp))
object = $(patsubst %,$(BUILD)/%.o,$(basename $(1)))

.PHONY: always all test train imdb examples check-examples debug gdb-test sanitize races faults format lint install help clean check-packages cuda cuda-tests cuda-f32 check-nvcc
all: $(BUILD)/heed $(addprefix $(BUILD)/, $(EXAMPLES))

help:
	@echo 'make            the library, the program build/heed and the examples'
	@echo 'make test       all tests; the last line is "N passed, N failed"'
	@echo 'make train      the main job: trains the text classifier on the built-in reviews'
	@echo 'make imdb       downloads IMDb (aclImdb v1), trains and evaluates; ARCHIVE=file [MD5=...] takes a local copy'
	@echo 'make examples   builds and runs every example; make check-examples: their quick settings print what they show'
	@echo 'make debug      -O0 -g into build/debug, for gdb; make gdb-test: the gdb session of cuda/README.md'
	@echo 'make sanitize   the tests under AddressSanitizer and UBSan'
	@echo 'make races      the CUDA kernels under ThreadSanitizer; make faults: who finds which planted fault'
	@echo 'make cuda       build/cuda/heed with the device cuda, by nvcc; ARCH="80 90" names the GPUs'
	@echo 'make cuda-tests the tests with that device; make cuda-f32: no f64 in f32 kernels'
	@echo 'make format     clang-format over the sources; make lint: clang-tidy'
	@echo 'make install    headers, library, program, pkg-config file into PREFIX=$(PREFIX)'
	@echo 'make clean      removes build/'
	@echo 'Variables: CXX, MARCH (default -march=native), BLAS_LIBS, PREFIX, DESTDIR'

# One sentence instead of a page of compiler errors.
check-packages:
	@missing=; \
	check() { printf '#include <%s>\n' "$$1" | $(CXX) $(FLAGS) -E -x c++ - >/dev/null 2>&1 || missing="$$missing $$2"; }; \
	command -v $(firstword $(CXX)) >/dev/null 2>&1 || missing="$$missing g++"; \
	check cblas.h libopenblas-openmp-dev; check CLI/CLI.hpp libcli11-dev; check nlohmann/json.hpp nlohmann-json3-dev; \
	check doctest/doctest.h doctest-dev; \
	$(if $(WITH_CUDA),, command -v pkg-config >/dev/null 2>&1 || missing="$$missing pkg-config";) \
	if [ -n "$$missing" ]; then echo "make: packages are missing; as root: apt-get install -y$$missing" >&2; exit 1; fi

$(BUILD)/%.o: %.cpp | check-packages
	@mkdir -p $(@D)
	$(COMPILE)

# A kernel file, compiled by g++ against the emulator (cuda/gpu.h): the device `emulated`.
$(BUILD)/%.o: %.cu | check-packages
	@mkdir -p $(@D)
	$(COMPILE) -Wno-unknown-pragmas

$(BUILD)/nvcc/%.o: cuda/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) -MMD -MP -c $< -o $@

# Most of the time of a small file goes into the standard headers, so a room is compiled as one: a clean build takes less than
# half of the time. Names in unnamed namespaces must differ within a room. After a change in one file `make ROOMS=` compiles
# that one alone; `make debug` does so too.
ROOMS        ?= cuda train autograd cpu tensor nn commands emulator
room_cpu     := $(wildcard tensor/cpu*.cpp)
room_tensor  := $(filter-out $(ALONE) $(room_cpu), $(wildcard tensor/*.cpp))
room_autograd := $(wildcard autograd/*.cpp autograd/*/*.cpp)
room_nn      := $(wildcard nn/*.cpp)
room_cuda    := $(wildcard cuda/*.cu)
room_emulator := $(wildcard cuda/emulator/*.cpp)
room_train   := $(filter-out $(ALONE) $(PROGRAM_SOURCES), $(wildcard train/*.cpp))
room_commands := $(filter-out $(ALONE), $(PROGRAM_SOURCES))
in_rooms     := $(foreach room, $(ROOMS), $(room_$(room)))
objects       = $(call object, $(filter-out $(in_rooms), $(1))) \
                $(foreach room, $(ROOMS), $(if $(filter $(room_$(room)), $(1)), $(BUILD)/rooms/$(room).o))

$(ROOMS:%=$(BUILD)/rooms/%.cpp): $(BUILD)/rooms/%.cpp: always
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(room_$*) > $@.new; cmp -s $@ $@.new && rm $@.new || mv $@.new $@
$(ROOMS:%=$(BUILD)/rooms/%.o): $(BUILD)/rooms/%.o: $(BUILD)/rooms/%.cpp | check-packages
	$(COMPILE) -Wno-unknown-pragmas

# Where the time goes is compiled hard; what only reads a command line, JSON or a test table is compiled fast, and so are the
# kernels for the emulator, which takes its time by changing threads.
# A square root that sets errno is no vector instruction.
$(BUILD)/rooms/cpu.o $(call object, $(room_cpu)): LEVEL = -O3 -fno-math-errno
$(BUILD)/rooms/cuda.o $(call object, $(room_cuda) $(JSON_SOURCES) $(TEST_SOURCES)): LEVEL = -O1
$(call object, train/heed.cpp): LEVEL = -O0

$(BUILD)/libheed.a: $(call objects, $(LIBRARY_SOURCES)) $(NVCC_OBJECTS)
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/heed: $(call objects, $(PROGRAM_SOURCES)) $(BUILD)/libheed.a
	$(LINK)

$(BUILD)/heed-tests: $(call object, $(TEST_SOURCES)) $(BUILD)/libheed.a
	$(LINK)

$(BUILD)/examples/%: $(BUILD)/examples/%.o $(BUILD)/libheed.a
	$(LINK)

.PRECIOUS: $(BUILD)/%.o
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

# Beside other programs OpenMP's spinning would cost many times the work.
test sanitize examples check-examples: export GOMP_SPINCOUNT ?= 10000
test: $(BUILD)/heed-tests $(BUILD)/heed
	$(BUILD)/heed-tests

train: $(BUILD)/heed
	$(BUILD)/heed train --data reviews --out runs/reviews

imdb: $(BUILD)/heed
	train/get_imdb.sh data $(ARCHIVE) $(MD5)
	$(BUILD)/heed train --data data/aclImdb --out runs/imdb

examples: $(addprefix $(BUILD)/, $(EXAMPLES))
	@set -e; for program in $(sort $^); do echo "== $$program"; $$program; done

# All but why_attention, which trains for minutes.
check-examples: $(addprefix $(BUILD)/, $(filter-out %/why_attention, $(EXAMPLES)))
	tests/check_examples.sh $(sort $^)

# All of the library, so that gdb can call what the program does not: print x.to_string(4).
debug:
	$(MAKE) BUILD=build/debug ROOMS= OPTIMIZE=-O0 CXXFLAGS=-g WHOLE=1 build/debug/heed $(addprefix build/debug/, $(EXAMPLES))

# The session of cuda/README.md, with the objects of `make debug` that it needs.
GDB_SOURCES := tests/gdb/softmax.cpp $(wildcard tensor/*.cpp cuda/*.cu cuda/emulator/*.cpp)
$(BUILD)/softmax: $(call object, $(GDB_SOURCES))
	$(LINK)

gdb-test:
	$(MAKE) BUILD=build/debug ROOMS= OPTIMIZE=-O0 CXXFLAGS=-g build/debug/softmax
	tests/gdb/run.sh build/debug/softmax

cuda: check-nvcc
	$(MAKE) WITH_CUDA=1 BUILD=build/cuda build/cuda/heed
cuda-tests: check-nvcc
	$(MAKE) WITH_CUDA=1 BUILD=build/cuda build/cuda/heed build/cuda/heed-tests

check-nvcc:
	@version=$$($(NVCC) --version 2>/dev/null | sed -n 's/.*release \([0-9]*\).*/\1/p'); \
	if [ -z "$$version" ]; then \
	  echo "make cuda: there is no nvcc; install the CUDA Toolkit 12 or newer, or say where it is with NVCC=/path/to/nvcc" >&2; exit 1; fi; \
	if [ "$$version" -lt 12 ]; then echo "make cuda: $(NVCC) is of CUDA $$version; heed needs 12 or newer" >&2; exit 1; fi; \
	echo '#include <string>' | $(NVCC) -std=c++20 -ccbin $(CUDA_HOST) -x cu -c -o /dev/null - >/dev/null 2>&1 || { \
	  echo "make cuda: nvcc $$version cannot compile C++20 with $(CUDA_HOST); choose another host compiler with CUDA_HOST=g++-N" >&2; exit 1; }; \
	echo 'int main() {}' | $(CXX) -x c++ - $(CUDA_LIBS) -o /dev/null 2>/dev/null || { \
	  echo "make cuda: cuBLAS or the CUDA runtime was not found beside $(NVCC); say where with CUDA_LIBS='-L/path -lcublas -lcudart'" >&2; exit 1; }

# f32 kernels must not compute in f64, which is 64 times slower on most GPUs. Left out: sums of squares and conversions, which do
# so on purpose, CUDA's own sin and cos (of huge arguments), and matmul.cu, which has no kernel.
F32_FILES := $(filter-out cuda/reduce.cu cuda/copy.cu cuda/elementwise.cu cuda/matmul.cu, $(wildcard cuda/*.cu))
cuda-f32: $(F32_FILES:cuda/%.cu=build/cuda/f32/%.o)
build/cuda/f32/%.o: cuda/%.cu | check-nvcc
	@mkdir -p $(@D)
	$(NVCC) $(filter-out -gencode arch=%, $(NVCC_FLAGS)) -arch=sm_90 -DHEED_ONLY_F32 -Xptxas -warn-double-usage -c $< -o $@

SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
sanitize:
	$(MAKE) BUILD=build/sanitize OPTIMIZE=-O1 CXXFLAGS=-g1 SANITIZE="$(SANITIZERS)" build/sanitize/heed-tests build/sanitize/heed
	HEED_SANITIZE=1 build/sanitize/heed-tests

# The kernels and their tests under ThreadSanitizer, which sees each GPU thread as a thread; the emulator itself is not instrumented.
RACE_OBJECTS := $(patsubst %,$(BUILD)/races/%.o, $(wildcard cuda/*.cu) tests/main.cpp tests/test_emulator.cpp $(wildcard tests/test_kernels*.cpp))
$(BUILD)/races/%.o: % | check-packages
	@mkdir -p $(@D)
	$(COMPILE) -Wno-unknown-pragmas -O1 -g1 -fsanitize=thread

$(BUILD)/races/heed-tests: $(RACE_OBJECTS) $(BUILD)/libheed.a
	$(LINK) -fsanitize=thread

# Blocks in no order too: only so is a race between blocks seen. `cpu` on one thread, since libgomp is not instrumented.
races: export OMP_THREAD_LIMIT = 1
races: $(BUILD)/races/heed-tests
	$< --test-case='emulator*'
	HEED_EMULATOR=unordered=1 $<

faults: $(BUILD)/libheed.a
	LIBS="-fopenmp $(BLAS_LIBS)" tests/emulator_faults.sh $< $(BUILD)/faults $(CXX) $(FLAGS) -Wno-unknown-pragmas

SOURCES := $(wildcard */*.h */*.cpp autograd/*/*.h autograd/*/*.cpp cuda/*.cu cuda/emulator/*.h cuda/emulator/*.cpp tests/faults/*.cu tests/gdb/*.cpp)
format:
	clang-format -i $(SOURCES)

lint:
	clang-tidy --quiet $(filter %.cpp, $(LIBRARY_SOURCES)) $(PROGRAM_SOURCES) -- $(FLAGS)

install: override PREFIX := $(abspath $(PREFIX))
install: $(BUILD)/heed $(BUILD)/libheed.a
	for header in $(wildcard tensor/*.h autograd/*.h nn/*.h train/*.h); do \
	  install -D -m 644 $$header $(DESTDIR)$(PREFIX)/include/heed/$$header || exit 1; done
	install -D -m 644 $(BUILD)/libheed.a $(DESTDIR)$(PREFIX)/lib/libheed.a
	install -D -m 755 $(BUILD)/heed $(DESTDIR)$(PREFIX)/bin/heed
	@mkdir -p $(DESTDIR)$(PREFIX)/lib/pkgconfig
	printf '%s\n' 'Name: heed' 'Description: a tiny reverse-mode autograd tensor' 'Version: 0.1.0' \
	  'Cflags: -std=c++20 -fopenmp -I$(PREFIX)/include/heed' 'Libs: -fopenmp -L$(PREFIX)/lib -lheed $(BLAS_LIBS)' \
	  > $(DESTDIR)$(PREFIX)/lib/pkgconfig/heed.pc

clean:
	rm -rf $(BUILD)
