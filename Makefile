# The two commands of the README are `make demo` and `make test`; both install what is missing first.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
CARGO ?= cargo
WEFT := target/release/weft
NOW := date +%s

PREFIX ?= /usr/local
DESTDIR ?=
# The toolchain in deps/rust.txt where it is installed; another one works, too, and is told.
PINNED := $(shell scripts/toolchain.sh)
ifneq ($(PINNED),)
export RUSTUP_TOOLCHAIN := $(PINNED)
endif

# Whoever is not root gets root's rights where labs and packages need them.
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: help deps deps-test toolchain build sim install uninstall package package-test demo test test-long lint unit objects mutations soak sbom kernels services readme cluster pages simulator-only fresh clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 24

deps: ## install the Debian packages that building and running need
	@scripts/deps.sh build run

deps-test: ## the same, and what the tests need
	@scripts/deps.sh build run test metrics pages

toolchain:
	@scripts/toolchain.sh --say

build: deps ## build target/release/weft
	$(CARGO) build --release --locked --package weft

# Its own folder: `make install` and the rest take $(WEFT), which has everything.
sim: ## build the simulator alone, with nothing but Rust and a C compiler, and run a first plan in it: target/sim/release/weft
	@command -v cc > /dev/null || { echo "make sim: a C compiler is missing (SQLite is compiled in): apt-get install gcc libc6-dev" >&2; exit 4; }
	@start=$$($(NOW)); \
	$(CARGO) build --release --locked --package weft --no-default-features --target-dir target/sim; \
	built=$$($(NOW)); \
	target/sim/release/weft run vl2/fig09-shuffle --quick; \
	end=$$($(NOW)); \
	echo "make sim: $$((end - start)) s ($$((built - start)) s to build target/sim/release/weft, $$((end - built)) s to run)"

install: ## install what was built, with units, man pages and completions (PREFIX=/usr/local, DESTDIR for packages)
	@scripts/install.sh $(WEFT) $(PREFIX) $(DESTDIR)

uninstall: ## remove what `make install` installed
	@rm -f $(DESTDIR)$(PREFIX)/bin/weft $(DESTDIR)$(PREFIX)/lib/systemd/system/weft-{agent,directory,switch,tor,vtep,rbridge}.service \
	  $(DESTDIR)$(PREFIX)/lib/systemd/system/run-weft-bpf.mount $(DESTDIR)$(PREFIX)/lib/sysusers.d/weft.conf \
	  $(DESTDIR)$(PREFIX)/share/man/man1/weft{,-*}.1.gz $(DESTDIR)$(PREFIX)/share/bash-completion/completions/weft \
	  $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_weft $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/weft.fish
	@rm -rf $(DESTDIR)$(PREFIX)/share/doc/weft $(DESTDIR)/etc/weft/examples
	@rmdir --ignore-fail-on-non-empty $(DESTDIR)/etc/weft 2> /dev/null || true

# Where Rust's own linker is LLD: functions of the same instructions are one, and addresses to relocate are a bitmap (glibc 2.36).
ifeq ($(shell uname -m),x86_64)
DIST_LINK := -Clink-arg=-Wl,--icf=all -Clink-arg=-Wl,-z,pack-relative-relocs
endif

# Both binaries are `weft`: the simulator's is put aside before the other one is made.
package: ## build Debian packages into target/package: weft, and weft-sim without daemons and labs
	@scripts/deps.sh build package
	@start=$$($(NOW)); \
	mkdir -p target/package; rm -f target/package/*.deb; \
	$(CARGO) rustc --profile dist --locked --package weft --bin weft --no-default-features -- $(DIST_LINK); \
	scripts/package/build.sh weft-sim target/dist/weft target/package; \
	simulator=$$($(NOW)); \
	$(CARGO) rustc --profile dist --locked --package weft --bin weft -- $(DIST_LINK); \
	scripts/package/build.sh weft target/dist/weft target/package; \
	end=$$($(NOW)); \
	echo "make package: $$((end - start)) s, $$((end - simulator)) s of them for weft"

package-test: ## install, run and purge both packages on a bare Debian 12
	@scripts/deps.sh package
	@scripts/package/test.sh target/package/*.deb

demo: ## build, run the VL2 shuffle on 75 servers, print the claims and the report's path
	@start=$$($(NOW)); \
	$(MAKE) --no-print-directory build; \
	built=$$($(NOW)); \
	mkdir -p run; \
	$(SUDO) $(WEFT) run vl2/fig09-shuffle --engine lab --step auto --allow-inconclusive; \
	end=$$($(NOW)); \
	echo "make demo: $$((end - start)) s ($$((built - start)) s to install and build, $$((end - built)) s to run)"

test: ## lint, the simulator-only build, eBPF objects on Debian's kernels, and every test; ends with what was skipped
	@start=$$($(NOW)); \
	$(MAKE) --no-print-directory deps-test toolchain lint simulator-only objects unit; \
	end=$$($(NOW)); \
	echo "make test: $$((end - start)) s, nothing failed"

lint:
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --release --locked --workspace --all-targets -- --deny warnings

# Tests append to it why they did not run. Those that may not where WEFT_REQUIRE_ALL=1 are in deps/skips.txt.
export WEFT_SKIPS := $(CURDIR)/target/skips

fresh:
	@mkdir -p target; rm -f $(WEFT_SKIPS)

unit: fresh
	$(CARGO) test --release --locked --workspace --no-run
	@sync # what the build has written: stores of tests wait for the disk behind it
	@CARGO="$(CARGO)" target/release/xtask test $(WEFT_SKIPS)

objects: fresh # every eBPF object loads on Debian's kernels 6.1 and 6.12: a slice of `make kernels`
	@CARGO="$(CARGO)" scripts/kernels/objects.sh

test-long: deps-test fresh ## the tests that take long, which `make test` leaves out; 4 minutes
	$(CARGO) test --release --locked --workspace --no-run
	@CARGO="$(CARGO)" target/release/xtask test-long $(WEFT_SKIPS)

mutations: ## run plans on systems that something is wrong with: their claims must fail (MUTATIONS=fig13: one); 20 minutes
	WEFT_MUTATIONS=$(MUTATIONS) $(CARGO) test --release --locked --package weft --test cli mutations -- --nocapture

MUTATIONS ?= all
MINUTES ?= 10
soak: ## fresh seeds of every simulator, faults on real etcd clusters, libFuzzer on every target, for MINUTES=10 on top of building
	@scripts/deps.sh build run test soak
	@CARGO="$(CARGO)" scripts/soak/run.sh $(MINUTES)

sbom: ## write target/weft.cdx.json: what the binary is made of, as CycloneDX
	@mkdir -p target
	@$(CARGO) build --release --locked --quiet --workspace --bin xtask
	@target/release/xtask sbom > target/weft.cdx.json.new
	@mv target/weft.cdx.json.new target/weft.cdx.json
	@echo target/weft.cdx.json
KERNELS ?= running 6.1 6.12 newest
kernels: ## objects, frame tests, labs on Debian's kernels in virtual machines (KERNELS="6.1 6.12"); writes docs/kernels.md
	@CARGO="$(CARGO)" scripts/kernels/run.sh $(KERNELS)

services: ## docs/vl2.md with every daemon a service, on six containers with a systemd each: kills, a hang, a boot; two minutes
	@scripts/deps.sh build run test services
	@BACKEND=nspawn scripts/docs/run.sh docs/vl2.md $(WEFT)

DEBIAN ?= 12 13
readme: ## README.md and the pages of docs so marked, pasted into fresh Debians (DEBIAN="12 13"; BUILT=target/release/weft: not built there)
	@scripts/deps.sh package
	@BUILT="$(BUILT)" scripts/docs/debian.sh $(DEBIAN)

cluster: ## sweeps on a real Slurm with two nodes and on GNU parallel, Jobs by Kubernetes' schemas, the static binary
	@CARGO="$(CARGO)" scripts/cluster/run.sh

pages: ## reports and replays in a headless browser at 1280 and 400 pixels: what they show, how they fit (fetches 100 MB the first time)
	@scripts/deps.sh build pages
	$(CARGO) build --release --locked --package weft
	@scripts/pages/run.sh $(WEFT)

simulator-only: # the binary without the lab (no clang, no libelf, no root), and daemons without etcd (no protoc)
	$(CARGO) clippy --release --locked --package weft --package weft-node --no-default-features -- --deny warnings

clean: ## remove what was built, and anything a lab left behind
	@if [ -x $(WEFT) ] && [ "$$(id -u)" = 0 ]; then $(WEFT) lab down --all --yes; fi
	$(CARGO) clean
