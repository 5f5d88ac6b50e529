# Every target installs what it needs: Python packages from the lock file, and Go programs and images, which are built
# once per version and kept in the cache folder.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
export OTS_TUNNEL_CACHE ?= $(HOME)/.cache/ots-tunnel
UV_VERSION := 0.13.8
export UV := $(OTS_TUNNEL_CACHE)/uv-$(UV_VERSION)/bin/uv
RUN := $(UV) run --frozen --no-sync
# fetch: where there is no C compiler one is fetched as a package; python: do without the compiled codec
OTS_TUNNEL_BUILD ?= fetch
SYNC = OTS_TUNNEL_BUILD=$(OTS_TUNNEL_BUILD) $(UV) sync --frozen --quiet --all-extras --all-groups
IS_COMPILED = $(RUN) python -c 'import sys; from ots_tunnel.protocol.plainbuffer.compiled import NOT_COMPILED; sys.exit(NOT_COMPILED)'
CONTEXT ?=
SEED ?= 1
STEPS ?=
MINORS ?=

.PHONY: help
help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(UV):
	@echo "installing uv $(UV_VERSION) into $(OTS_TUNNEL_CACHE)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, found " + sys.version.split()[0])'
	@$(PYTHON) -m venv $(dir $(@D))
	@$(dir $(@D))bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

# it lies among the sources, where `git clean` removes it and leaves .venv
CODEC := $(wildcard worker/ots_tunnel/protocol/plainbuffer/_native*.so)
.PHONY: again
.venv/.synced: pyproject.toml uv.lock worker/build_codec.py $(wildcard worker/ots_tunnel/*/*/*.pyx worker/ots_tunnel/*/*/*/*.pxi) $(if $(CODEC)$(filter python,$(OTS_TUNNEL_BUILD)),,again) | $(UV)
	@echo "installing the Python packages of uv.lock (the first time: two minutes, mostly PySpark)"
	@$(SYNC)
ifeq ($(OTS_TUNNEL_BUILD),python)
	@touch $@
else
	@# what a build of before left may be gone, or be another interpreter's
	@$(IS_COMPILED) 2>/dev/null || $(SYNC) --reinstall-package ots-tunnel
	@if $(IS_COMPILED) 2>/dev/null; then touch $@; else \
		echo "the codec is the one in Python, many times slower: this Python has no headers (Debian: apt-get install python3-dev)"; fi
endif

.PHONY: setup
setup: .venv/.synced ## Install the Python packages

.PHONY: demo
demo: setup ## Copy a real table on a local Kubernetes, and compare both tables
	@$(RUN) python -m tests.demo --context '$(CONTEXT)'

.PHONY: demo-spark
demo-spark: setup ## Keep a mirror of the table in Delta by Spark, and compare it with the table
	@$(RUN) python -m tests.demo --engine lake

.PHONY: demo-down
demo-down: setup ## Remove every trace of the demo's cluster
	@tests/cluster/cluster.sh down ott-demo

.PHONY: test
test: setup ## Lint, types, import contracts and all tests but the long ones
	@$(RUN) python -m tests.suite

.PHONY: test-long
test-long: setup ## The long runs: many seeds, many kills (over an hour)
	@$(RUN) python -m tests.suite --long

.PHONY: test-spark
test-spark: setup ## Of test-long: the Spark source with other minors of PySpark, and Spark Connect (MINORS='4.0 4.3')
	@$(RUN) python -m tests.spark.matrix $(MINORS)

.PHONY: simulate
simulate: setup ## Tell the story of a seed in simulated time, and shrink it if it fails (SEED=17, STEPS=3)
	@$(RUN) python -m tests.simulation replay $(SEED) $(if $(STEPS),--steps $(STEPS))

.PHONY: mutants
mutants: setup ## Plant defects, one at a time, and print which of them the simulation and the tests find (more than an hour)
	@$(RUN) python -m tests.mutants

.PHONY: plugin
plugin: setup ## Write kubectl ott as one archive, with a manifest for krew, into build/plugin
	@$(RUN) python operator/build_plugin.py

.PHONY: wheels
wheels: $(UV) ## Build a compiled wheel for each of Python 3.11 to 3.13 into dist, and try each in a fresh environment
	@$(PYTHON) worker/build_wheels.py

.PHONY: bench
bench: setup ## Measure worker, emulator and operator; writes bench.json and the table of docs/performance.md
	@failed=; trap 'exit 130' INT TERM; \
	for part in bench bench.shards bench.sinks bench.spark bench.emulator bench.emulator_durable bench.pages bench.scale \
	    bench.size docs.fill; do $(RUN) python -m tests.$$part || failed="$$failed tests.$$part"; done; \
	[ -z "$$failed" ] || { echo "failed:$$failed; some of their figures may be those of an earlier run" >&2; exit 1; }

.PHONY: lint
lint: setup ## Lint, format, types, import contracts, generated files
	@$(RUN) python -m tests.suite --only lint

.PHONY: types
types: setup ## Types of the three packages
	@$(RUN) mypy

.PHONY: coverage
coverage: setup ## Measure the tests without a cluster; the gate per package, and pages in build/coverage/html
	@$(RUN) python -m tests.suite --only fast leases reference api spark coverage && status=0 || status=$$?; \
		$(RUN) coverage html --quiet; exit $$status

.PHONY: format
format: setup ## Format the code
	@$(RUN) ruff format .
	@$(RUN) ruff check --fix .

.PHONY: docs
docs: setup ## Check the documents: generated parts, links, citations, commands, code blocks
	@$(RUN) python -m tests.docs.fill --check
	@$(RUN) pytest -q tests/docs

.PHONY: generate
generate: setup ## Write the generated files: protobuf code, CRD, parts of the documents
	@$(UV) run --isolated --no-project --python 3.11 --with grpcio-tools==1.62.3 --with 'setuptools<81' python tests/golden/generate_proto.py
	@$(RUN) python -m ots_tunnel_operator.api.crd
	@$(RUN) python -m tests.chart.values_schema
	@$(RUN) python -m tests.docs.fill
