# SPDX-License-Identifier: Apache-2.0
#
# The commands of this repository, over Meson. `make help` lists them. Every one first installs the
# Debian packages it needs and does not find (scripts/bootstrap; nothing happens if all are there).

BUILD ?= build
SAN_BUILD ?= build-san
PREFIX ?= /usr/local
DESTDIR ?=
SOAK ?= 30m
FUZZ_SECONDS ?= 60
TESTS ?=

.DEFAULT_GOAL := all
.PHONY: all help run demo test lint install bench bench-gateway sanitize asan-gateway fuzz soak format docs clean

help:
	@echo 'make                build everything into $(BUILD)/'
	@echo 'make run            the demo shop with the gateway before it (PORT=, SHOP_PORT=, ADMIN_PORT=)'
	@echo 'make demo           a double charge prevented, played unattended'
	@echo 'make test           every test (TESTS="gateway -k replay" for some)'
	@echo 'make lint           the rules of the house'
	@echo 'make sanitize       the C tests under AddressSanitizer and UndefinedBehaviorSanitizer'
	@echo 'make asan-gateway   black-box tests with nginx, its pools and the module under AddressSanitizer'
	@echo 'make fuzz           libFuzzer targets, FUZZ_SECONDS=$(FUZZ_SECONDS) each'
	@echo 'make soak           every test again and again for SOAK=$(SOAK)'
	@echo 'make bench          every published figure; make bench-gateway for those of the gateway'
	@echo 'make install        into PREFIX=$(PREFIX), below DESTDIR if given'
	@echo 'make format         clang-format over the sources'
	@echo 'make docs           write the generated pages again'
	@echo 'make clean          remove what was built'

all:
	@scripts/bootstrap build
	@scripts/build $(BUILD)

run: all
	@scripts/run --build $(BUILD)

demo: all
	@scripts/demo --build $(BUILD)

test:
	@scripts/bootstrap build test
	@tests/run --build $(BUILD) $(TESTS)

lint:
	@scripts/bootstrap build test
	@scripts/lint

install: all
	@[ "$(PREFIX)" = /usr/local ] || meson configure $(BUILD) -Dprefix=$(PREFIX)
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD)

bench: bench-gateway
	@for script in bench/*/run; do \
	    [ "$$script" = bench/gateway/run ] || "$$script" || exit 1; \
	done

bench-gateway:
	@scripts/bootstrap build bench
	@scripts/build $(BUILD)
	@bench/gateway/run

# The C tests only: the gateway module is built too, but it needs an nginx with the sanitizer in it.
sanitize:
	@scripts/bootstrap build test
	@scripts/build-sanitized $(SAN_BUILD)
	@tests/run --build $(SAN_BUILD) --only-c --no-build

asan-gateway:
	@scripts/bootstrap build test
	@tests/gateway_asan --build $(SAN_BUILD) $(TESTS)

fuzz:
	@scripts/bootstrap build test
	@scripts/fuzz --seconds $(FUZZ_SECONDS)

soak:
	@scripts/bootstrap build test
	@tests/run --build $(BUILD) --soak $(SOAK) $(TESTS)

format:
	@scripts/bootstrap build test
	@scripts/lint --format

docs:
	@scripts/generate-docs

clean:
	@rm -rf build build-*
