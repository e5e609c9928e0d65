# A fresh clone needs python3 (3.11 or newer) with pip, and nothing else.
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python
# Hundreds of processes start in the tests: what they compile is kept, whatever the machine's habit.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help run test test-fast test-for lab pythons check docs pictures bench lock wheel sbom clean install install-dev browser pgbouncer haproxy etcd patroni

help: ## Show this list
	@awk -F ':.*## ' '/^## / { print "\n" substr($$0, 4) } /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

## Use
run: install ## Start everything with demo data and print a tour (ARGS="--port 9000 --fresh")
	@exec .venv/bin/payagg dev $(ARGS)

clean: ## Delete .venv and caches; the data under .payagg stays
	rm -rf .venv .build .pythons .patroni .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis tests/node/node_modules
	find src testing tests lab benchmarks tools -name __pycache__ -prune -exec rm -rf {} +

## Check
check: install-dev ## Check format, lint, types, import directions, locks and generated documents
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	$(PYTHON) -m mypy --python-version 3.14 src
	.venv/bin/lint-imports
	$(PYTHON) tools/lock.py --check
	$(PYTHON) -m tools.documents --check

docs: install-dev ## Write the documents that are generated from code
	$(PYTHON) -m tools.documents

pictures: install-dev browser ## Take the pictures of checkout and console again, docs/pictures/*.png
	$(PYTHON) tools/pictures.py

test-fast: install-dev ## Run the unit tests of rules, use cases and adapters (between two edits)
	$(PYTHON) -m pytest -q -n 2 -m "not long" tests/unit/domain tests/unit/application tests/unit/adapters $(ARGS)

test-for: install-dev browser pgbouncer haproxy ## Run the tests that belong to a file (FILE=src/payagg/domain/report.py)
	$(PYTHON) -m pytest -q -n 2 $(SPREAD) $$($(PYTHON) tools/tests_for.py $(FILE)) $(ARGS)

# Most tests wait for a server or a process, so there are more at once than cores. A file's tests run in one process, which
# starts its server or browser once (not by xdist's groups: 3.8 writes them where pytest 9.2 no longer reads); long ones first.
SPREAD := --dist loadfile --no-loadscope-reorder
test: install-dev browser pgbouncer haproxy ## Run the tests (ARGS="-k name" chooses; ARGS="-m release" runs those of a release)
	$(PYTHON) -m pytest -n 6 $(SPREAD) -m "not release" $(ARGS)

## Prove
lab: install-dev ## Prove what no test can: list the laboratory's parts, or run one (ARGS="crashes --only w3")
	@PYTHONPATH=src:testing:. $(PYTHON) -m lab $(ARGS)

pythons: install-dev browser ## Try every other Python from 3.11 to 3.14 that this machine has (ARGS="tests/unit")
	@sh tools/pythons.sh $(ARGS)

## Measure
bench: install-dev ## Measure, "peers" unless named: peers steps journey growth instructions (ARGS="steps --rounds 3")
	$(PYTHON) -m benchmarks $(ARGS)

## Package
wheel: ## Build the packages, payagg and payagg-testing, in dist/
	@sh tools/install.sh requirements-build.lock .build
	.build/bin/python -m hatchling build -t wheel -d dist
	cd testing && $(CURDIR)/.build/bin/python -m hatchling build -t wheel -d ../dist

lock: install-dev ## Choose the newest dependencies and write the lock files
	$(PYTHON) tools/lock.py

sbom: install-dev ## List what production installs, and from which commit, as CycloneDX in dist/payagg.cdx.json
	$(PYTHON) tools/sbom.py dist/payagg.cdx.json

install:
	@sh tools/install.sh requirements-embedded.lock

install-dev:
	@sh tools/install.sh requirements-dev.lock

browser:
	@sh tools/browser.sh

pgbouncer:
	@sh tools/debian.sh pgbouncer PgBouncer

haproxy:
	@sh tools/debian.sh haproxy HAProxy

etcd:
	@sh tools/debian.sh etcd etcd etcd-server
	@sh tools/debian.sh iptables iptables

patroni:
	@sh tools/install.sh requirements-ha.lock .patroni
