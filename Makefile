# Every target first installs what it needs. After that, only `make lowest`, `make spark-next`, `make image`, `make release`,
# the tests of the latter and of the wheel, the first tests of franz-go, of the S3 server and of the chart and, unless promtool
# is installed, the first test of the alert rules use a network.

VENV   := .venv
PYTHON := $(VENV)/bin/python
STAMP  := $(VENV)/.installed
TYPES  := $(VENV)/types/.installed
TIMES  := $(VENV)/.test-times
LOWEST := build/lowest

.DEFAULT_GOAL := help
.PHONY: $(shell awk -F: '/^[a-z-]+:.*## / { print $$1 }' $(firstword $(MAKEFILE_LIST)))

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv, install the project, download the jars
	@$(PYTHON) -m streaming.embedded.jars

archive: setup ## Make the class archives, with which the job starts in two thirds of the time and a broker in half
	@$(PYTHON) -m streaming.job.make_class_archive

demo: setup ## Show a broker, the coordinator and consumers on this machine, with three kill -9s
	@$(VENV)/bin/group-coordinator demo --html build/demo.html

cluster-demo: archive ## Show the coordinator on a Spark cluster with an object store, and kill an executor and the active job
	@$(PYTHON) -m tests.cluster.demo

DRILL ?= all
drill: archive ## Break a coordinator in eight ways under live clients, measure, write a report: DRILL=all, several minutes
	@$(VENV)/bin/group-coordinator drill $(DRILL)

# $(call timed,name,command): run a part of the tests and note its time, which `make test` prints at the end.
timed = @begin=$$(date +%s) && echo "== $(1)" && $(2) && echo "$$(( $$(date +%s) - begin )) s  $(1)" >> $(TIMES)
PYTEST := $(PYTHON) -m pytest
# Most tests start processes of this project. Without compiled files, each of them compiles 200 modules first.
export PYTHONDONTWRITEBYTECODE :=
# Three files at a time, since a test waits for processes and timeouts: two cores are idle for a tenth of the time. With four,
# a session of a few seconds ended while a job started again.
PARALLEL := $(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder

# Without Java, a test that starts a JVM and lacks the mark for it fails.
check: lint ## Check style and types, and run the tests that need no JVM: under 2 minutes
	JAVA_HOME=/without-java $(PYTEST) -n 2 --dist worksteal -m "not jvm and not long" --ignore tests/logic/exhaustive --ignore tests/fuzz --ignore tests/clients --ignore tests/oracle --ignore tests/release/test_release.py --ignore tests/chart --ignore-glob "tests/recovery/test_*.py"

# The longest files first, so that none goes on for long after the others.
TOGETHER := tests/cli tests/recovery tests/clients tests/release tests/smokes/test_targets.py \
    tests/smokes/test_campaigns.py tests/fifth_type tests/job tests/gateway tests/client tests/embedded \
    tests/fuzz tests/oracle/assignors tests/bench tests/docs tests/explain tests/spark_next \
    tests/object_store/test_failures.py tests/object_store/test_job.py tests/cluster/test_standalone.py \
    tests/cluster/test_failures.py tests/cluster/test_document.py tests/cluster/test_packing.py tests/soak \
    tests/drills tests/deploy tests/chart tests/journal tests/contract tests/logic tests/growth \
    tests/kafka_tests tests/support tests/test_structure.py tests/test_examples.py

test: archive $(TYPES) ## Run the tests, with the same random examples in each run, and print the time of each part: half an hour or more
	@$(PYTHON) -m tests.clients.programs.jars
	@rm -f $(TIMES)
	$(call timed,three at a time,$(PARALLEL) -m "not long" $(TOGETHER))
# Two files, and nothing else: on a busy machine, more scripts are inconclusive and run again.
	$(call timed,oracle,$(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder tests/oracle/test_random_scripts.py tests/oracle/test_matrix_against_broker.py tests/oracle/test_quirks_against_broker.py tests/oracle/test_broker_wide.py tests/oracle/consumer)
	@echo "Times of the parts:"; cat $(TIMES)

long: archive $(TYPES) ## Run the tests that `make test` leaves out, such as further stores, client libraries, faults and hostile inputs: an hour
	@$(PYTHON) -m tests.clients.programs.jars
	$(PARALLEL) -m long $(TOGETHER)

lowest: $(STAMP) ## Run tests with the lowest versions of the dependencies that pyproject.toml allows
	$(VENV)/bin/uv venv --quiet --clear --python $(PYTHON) $(LOWEST)
	$(VENV)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct '.[demo]'
	$(VENV)/bin/uv pip install --quiet --python $(LOWEST)/bin/python \
		pytest pytest-timeout pytest-xdist hypothesis jsonschema trustme cryptography aiokafka
	JAVA_HOME=/without-java $(LOWEST)/bin/python -m pytest -n 2 -m "not jvm" --ignore tests/logic/exhaustive \
		tests/logic tests/contract tests/client tests/job tests/journal tests/gateway tests/cli tests/embedded
	$(LOWEST)/bin/python -m pytest tests/client/test_coordinator_client.py tests/gateway/groups tests/job/test_query.py tests/cli/test_run_with_gateway.py

lint: $(STAMP) $(TYPES) ## Check style, formatting, types and the directions of imports
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache

bench: archive ## Measure this machine's figures, and those of Spark's defaults and a broker: about 25 minutes
	$(PYTHON) -m tests.bench

bench-quick: archive ## Measure with less load and without warm-up: under 5 minutes
	$(PYTHON) -m tests.bench --quick

bench-compare: archive ## Compare this checkout with another one: AGAINST=/path/to/checkout, 13 minutes
	$(PYTHON) -m tests.bench.compare --against $(AGAINST)

bench-idle: archive ## Measure an idle minute, without groups and with 100,000: 5 minutes
	$(PYTHON) -m tests.bench.idle

bench-growth: archive ## Measure how cost grows with groups, members, offsets, requests, partitions and cores
	$(PYTHON) -m tests.bench.growth

bench-backlog: archive ## Measure how a million waiting requests are worked off in 1 GiB of heap: about 5 minutes
	$(PYTHON) -m tests.bench.outages.backlog

bench-scale: archive ## Measure the throughput with 1, 2 and 4 executors, each with a fixed share of a core: as root, 10 minutes
	$(PYTHON) -m tests.bench.cluster.scale

bench-backup: archive ## Measure what backups of 100,000 groups cost the clients meanwhile: about 6 minutes
	$(PYTHON) -m tests.bench.outages.backup

bench-checkpoints: archive ## Measure restore, rebuild and the like with 100,000 groups: about 6 minutes
	$(PYTHON) -m tests.bench.outages.checkpoints

bench-partitions: archive ## Measure what more request and state partitions cost clients, with 100,000 groups: 5 to 15 minutes
	$(PYTHON) -m tests.bench.outages.partitions

bench-upgrade: archive ## Measure what clients notice of an upgrade from the last release and of the way back, three times: 8 minutes
	$(PYTHON) -m tests.bench.outages.upgrade

bench-takeover: archive ## Measure 60 kills and 20 stops of the active job with a standby, and some without, with the phases of each: two hours; IN_STORE=yes has the checkpoint in an object store
	$(PYTHON) -m tests.bench.outages.takeover $(if $(IN_STORE),--in-store)

bench-store: archive ## Count the requests to an object store, for a batch and for an idle hour, and what they cost: 15 minutes
	$(PYTHON) -m tests.bench.stores.requests

bench-operators: archive ## Compare applyInPandasWithState with transformWithState for the whole step: about 20 minutes
	$(PYTHON) -m tests.bench.operators

spark-next: archive ## Try Spark's internals with the newest pyspark, or VERSIONS="4.2.1 4.3.0": 10 minutes for each; RECORD=yes writes the results
	$(PYTHON) -m tests.spark_next $(VERSIONS) $(if $(RECORD),--record)

kafka-tests: archive ## Run Kafka's own published tests of groups through job and gateway: PROFILES="requests joins", ONLY=regular-expression, AT_BROKERS=yes; an hour
	$(PYTHON) -m tests.kafka_tests $(PROFILES) $(if $(ONLY),--only '$(ONLY)') $(if $(AT_BROKERS),--at-brokers)

SCRIPTS ?= 2000
SEED ?= 1
oracle: setup ## Compare with a broker's coordinator: SCRIPTS=2000 random scripts from SEED=1
	$(PYTHON) -m tests.oracle --scripts $(SCRIPTS) --seed $(SEED)

oracle-consumer: setup ## Compare consumer groups with Kafka's own manager in fake time: SCRIPTS=2000 random scripts from SEED=1
	$(PYTHON) -m tests.oracle.consumer --scripts $(SCRIPTS) --seed $(SEED)

chart: $(STAMP) ## Check the Helm chart: lint, every value, schemas, command lines; OPERATOR_CRDS=folder has the Spark operators' own definitions
	$(PYTEST) -n 2 --dist worksteal tests/chart

# On a slow machine each of these two takes a quarter of an hour or more, of the hour and a half that `make test` has there.
cluster: archive ## Test the job on Spark clusters and with object stores, for minutes each: kills, spark-submit, YARN, the demo, the fence, chaos
	$(PYTEST) tests/cluster tests/object_store

smokes: archive ## Run each measurement at its smallest scale
	$(PARALLEL) tests/smokes/test_bench.py tests/smokes/test_outages.py

EXAMPLES ?= 2000
properties: $(STAMP) ## Search small groups more widely than `make test`, and check the properties that need no JVM with new random examples: EXAMPLES=2000, an hour or more
	EXHAUSTIVE=wide JAVA_HOME=/without-java $(PYTEST) -n 2 --dist loadfile tests/logic/exhaustive --timeout 0
	PROPERTY_EXAMPLES=$(EXAMPLES) JAVA_HOME=/without-java $(PYTEST) -n 2 --dist worksteal -m hypothesis --ignore tests/oracle --timeout 0

fuzz: MINUTES ?= 10
fuzz: setup ## Fuzz frames, envelopes, snapshots and subscriptions with new random inputs: MINUTES=10
	$(PYTHON) -m tests.fuzz --minutes $(MINUTES)

soak: MINUTES ?= 120
soak: archive ## Run 200 members beside hostile clients and restarts, and judge every slope: MINUTES=120
	$(PYTHON) -m tests.soak --minutes $(MINUTES)

kills: KILLS ?= 10
kills: archive ## Kill the coordinator KILLS=10 times under twenty members; `make test` kills it twice
	KILLS=$(KILLS) $(PYTEST) tests/recovery/test_kill_9.py

chaos: RUNS ?= 200
chaos: BESIDE ?= 1
chaos: archive ## Break processes, brokers, disks and clocks under live clients, and judge: RUNS=200 runs from SEED=1, BESIDE=1 at a time; NEWER=yes adds members of the consumer group protocol; CLUSTER=yes runs the jobs on a Spark cluster with an object store
	$(PYTHON) -m tests.recovery.chaos --runs $(RUNS) --seed $(SEED) --beside $(BESIDE) $(if $(FAULT),--only $(FAULT)) $(if $(NEWER),--newer) $(if $(CLUSTER),--cluster)

chaos-broken: RUNS ?= 5
chaos-broken: archive ## Plant defects in the job, and see that chaos finds each within RUNS=5 runs from SEED=1
	$(PYTHON) -m tests.recovery.chaos.broken --runs $(RUNS) --seed $(SEED) $(if $(DEFECT),--only $(DEFECT))

documents: $(STAMP) ## Write the generated parts of the documents
	$(PYTHON) -m docs.generate

console-pages: archive ## Play the console sessions of docs/console and write what they print; the ports 9092 and 19092 must be free
	$(PYTHON) -m tests.docs.console

release: $(STAMP) ## Build sdist and wheel, try the wheel, list and audit what it needs, and tag the version: DRY_RUN=yes leaves out the tag, UNAUDITED=yes accepts what the audit says
	@$(PYTHON) -m tests.release $(if $(DRY_RUN),--dry-run) $(if $(UNAUDITED),--unaudited)

# Needs no Python and no Java here: what the image has is installed in the image.
image: ## Build the image with docker, podman or buildah, show its size, and try it without a network
	@deploy/image/build.sh
	@deploy/image/try.sh

image-test: archive image ## Run containers of the image as deploy/compose.yaml does, and the chart's, with clients, kills and an object store: ten minutes
	$(PYTEST) tests/image

clean: ## Remove .venv and all generated files; the jars stay in their cache
	rm -rf $(VENV) build dist bench-results *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# For mypy, because the version that the project uses has no types; and for the tests, as a client.
$(TYPES): $(STAMP)
	@$(PYTHON) -m pip install --disable-pip-version-check --quiet --upgrade --no-deps --target $(VENV)/types confluent-kafka==2.16.1
	@touch $@

# Java is checked before the installation, which takes minutes. The folder may exist without a working pip:
# Debian's python3 creates such a folder if python3-venv is missing.
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
