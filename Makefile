# Everything a newcomer needs; each target makes its environment in .venv where there is none.
#
#   make demo     compile an attention kernel ahead of time, link it into a C++ program, run it, check it
#   make test     the tests
#   make test-all the tests, and those that take long
#   make test-gpu on a machine with an NVIDIA GPU: launching, and every numeric case beside the interpreter
#   make fuzz     random programs on the CPU and the emulator, compared with the interpreter: make fuzz ARGS="--count 5000"
#   make mutations  our PTX without one synchronising instruction at a time: the emulator notices
#   make bench    speed on the CPU beside NumPy's, and compile times
#   make lint     ruff
#   make clean    remove what these made, the environment included
#
# PYTHON=... names the Python to use, CC=... and CXX=... the compilers.

VENV := .venv
IN_VENV := $(CURDIR)/$(VENV)/bin
INSTALLED := $(VENV)/.installed
# What the demonstration runs in: without what tests, plots and launches on a GPU need. That of the tests will do, too.
DEMO_VENV := $(if $(wildcard $(INSTALLED)),$(VENV),.venv-demo)

# Make's own defaults are `cc` and `g++`; take whichever compilers there are instead.
ifeq ($(origin CC),default)
CC := $(firstword $(foreach name,cc gcc clang,$(if $(shell command -v $(name)),$(name))) cc)
endif
ifeq ($(origin CXX),default)
CXX := $(firstword $(foreach name,c++ g++ clang++,$(if $(shell command -v $(name)),$(name))) c++)
endif
export CC CXX

ARGS ?=

.PHONY: demo test test-all mutations test-gpu fuzz bench lint clean

demo: $(DEMO_VENV)/.installed
	@$(MAKE) --no-print-directory -C examples/aot DEUTERON=$(CURDIR)/$(DEMO_VENV)/bin/deuteron BUILD=$(CURDIR)/build/demo run

test: $(INSTALLED)
	$(IN_VENV)/python -m pytest -n auto

test-all: $(INSTALLED)
	$(IN_VENV)/python -m pytest -n auto -m "long or not long"

mutations: $(INSTALLED)
	PYTHONPATH=src:tests $(IN_VENV)/python -m emulator.mutations

# With an environment that has torch for the GPU, cuda-bindings and Deuteron: make test-gpu GPU_PYTHON=python3
GPU_PYTHON ?= $(IN_VENV)/python
test-gpu:
	$(GPU_PYTHON) -m pytest tests/gpu
	$(GPU_PYTHON) scripts/run_gpu_cases.py all build/gpu-cases

fuzz: $(INSTALLED)
	$(IN_VENV)/python -m tests.fuzz $(ARGS)

bench: $(INSTALLED)
	$(IN_VENV)/python -m benchmarks.cpu
	$(IN_VENV)/python -m benchmarks.compile_time

lint: $(INSTALLED)
	$(IN_VENV)/ruff check .
	$(IN_VENV)/ruff format --check .

clean:
	rm -rf build dist $(VENV) .venv-demo .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml scripts/make_environment.sh
	scripts/make_environment.sh $(VENV)
	@touch $@

.venv-demo/.installed: pyproject.toml scripts/make_environment.sh
	scripts/make_environment.sh .venv-demo demo
	@touch $@
