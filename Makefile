# Every target sets up what it needs first; once that is done, no network is used.

VENV   := .venv
PYTHON := $(VENV)/bin/python
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup archive demo test lint bench bench-quick bench-growth oracle documents clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv, install the project, download the jars
	@$(PYTHON) -m streaming.jars

archive: setup ## Make the archive with which the job's JVM starts in two thirds of the time
	@$(PYTHON) -m streaming.make_class_archive

demo: setup ## Run a broker, the coordinator and a few group members on this machine
	@$(VENV)/bin/group-coordinator demo

# Two files at a time: a test with Spark or a broker is waiting for half of its time, and each of the two has its own of
# both. One at a time where somebody else's timers judge, or a kill has to be survived within a session.
test: archive ## Run all tests
	@$(PYTHON) -m tests.clients.jars
	$(PYTHON) -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/streaming tests/logic
	$(PYTHON) -m pytest tests/clients tests/oracle tests/recovery

lint: $(STAMP) ## Check style, formatting and types
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

bench: archive ## Measure on this machine, beside Spark's defaults and a broker's coordinator: under 15 minutes
	$(PYTHON) -m tests.bench

bench-quick: archive ## The same with less of everything: under 4 minutes
	$(PYTHON) -m tests.bench --quick

bench-growth: archive ## Measure how cost grows with groups, members, offsets, requests, partitions and cores
	$(PYTHON) -m tests.bench.growth

SCRIPTS ?= 2000
SEED ?= 1
oracle: setup ## Compare with a real broker's coordinator: SCRIPTS=2000 random scripts made from SEED=1
	$(PYTHON) -m tests.oracle --scripts $(SCRIPTS) --seed $(SEED)

documents: $(STAMP) ## Write the generated parts of README.md and streaming/MESSAGES.md
	$(PYTHON) -m streaming.documents

clean: ## Remove .venv and everything generated; the downloaded jars stay in their cache
	rm -rf $(VENV) build dist bench-results *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Java is looked at before the minutes that the installation takes. The folder may exist without a
# working pip in it: Debian's python3 makes such a one when python3-venv is missing.
$(STAMP): pyproject.toml
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	command -v "$$java" >/dev/null || { \
		echo "Java was not found ($$java): install a Java 17 or later, or set JAVA_HOME to one." >&2; exit 1; }; \
	version=$$("$$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p'); \
	[ "$${version:-0}" -ge 17 ] || { \
		echo "$$java is older than Java 17: install a Java 17 or later, or set JAVA_HOME to one." >&2; exit 1; }
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || { \
		for candidate in python3 python3.13 python3.12 python3.11; do \
			if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
				echo "Creating $(VENV) with $$("$$candidate" --version)."; \
				"$$candidate" -m venv --clear $(VENV) && exit 0; \
				rm -rf $(VENV); exit 1; \
			fi; \
		done; \
		echo "Python 3.11 or later was not found: install python3.11 (with its venv module)." >&2; exit 1; }
	@echo "Installing the project and what it needs into $(VENV): a minute or two."
	@$(PYTHON) -m pip install --disable-pip-version-check --editable '.[dev]'
	@touch $@
