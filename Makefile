# SPDX-License-Identifier: MIT
#
# The front door. Meson and Ninja do the work, in build/; `make demo` and `make check` need nothing
# but git and make beforehand: they install what is missing (scripts/setup).

BUILD        := build
PREFIX       ?= /usr/local
DESTDIR      ?=
FUZZ_SECONDS ?= 60
SANITIZERS   ?= asan tsan
PARTS        ?=
SECONDS      ?=
SEED         ?=

all: ready-build products ## build the command and the libraries, in build/ (the default)

demo: setup-build products ## replay a sample log against two limits, then ask for a few permits
	@scripts/demo $(BUILD)

check: setup-build setup-servers setup-loops setup-extras compile ## run every test; the last line counts the cases
	@scripts/check $(BUILD)

install: all ## install under PREFIX (/usr/local), below DESTDIR when given
	@scripts/install $(BUILD) '$(PREFIX)' '$(DESTDIR)'

dist: ## write the source archive, redbucket-VERSION.tar.gz, here
	@scripts/dist

packages: setup-build setup-packages compile ## make the Debian packages, install, use and remove them, in build-packages/
	@scripts/packages build-packages
	@BUILD='$(BUILD)' PACKAGES=build-packages tests/tap.py tests/packages/test_packages.py

bench: setup-build setup-servers compile ## measure, as ratios in one run
	@meson test -C $(BUILD) --no-rebuild --benchmark --verbose

sanitize: setup-build setup-servers setup-loops setup-sanitize ## run every test under ASan and UBSan, then under TSan
	@scripts/sanitize $(SANITIZERS)

torture: setup-build setup-servers setup-loops setup-extras setup-sanitize setup-torture compile ## run the long tests, or PARTS of them; SECONDS for each, SEED
	@TORTURE_SECONDS='$(SECONDS)' TORTURE_SEED='$(SEED)' scripts/torture $(BUILD) $(PARTS)

fuzz: setup-build setup-sanitize ## run each fuzzer for FUZZ_SECONDS (60)
	@FUZZ_SECONDS='$(FUZZ_SECONDS)' scripts/fuzz

lint: setup-build setup-lint compile ## check format, style, layers, exports, warnings
	@scripts/lint/run $(BUILD)

clean: ## remove every build directory (build-deps, which was fetched, stays)
	find . -maxdepth 1 -type d \( -name build -o -name 'build-*' \) ! -name build-deps -exec rm -rf {} +

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup-servers:
	@scripts/setup servers
	@scripts/servers

# Tests of a loop, or of an installed file for a program, that isn't to be had are skipped.
setup-loops setup-extras setup-torture: setup-%:
	@scripts/setup $* || echo 'setup: going on without'

# Ninja knows better than make what is out of date, so these are never files to make.
setup-%:
	@scripts/setup $*

ready-%:
	@scripts/setup --check $*

compile: configure
	@ninja -C $(BUILD)

# What is installed, without the tests.
products: configure
	@ninja -C $(BUILD) products

configure:
	@scripts/configure $(BUILD) '$(PREFIX)'

.PHONY: all demo check install dist packages bench sanitize torture fuzz lint clean help compile products configure
.NOTPARALLEL:
