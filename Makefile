# A fresh clone needs python3 (3.11 to 3.13) with pip, and nothing else.
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python
.PHONY: help run test soak fuzz check docs site bench lock clean install install-dev browser pgbouncer

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: install ## Start everything with demo data and print a tour (ARGS="--port 9000 --fresh")
	@exec .venv/bin/payagg dev $(ARGS)

test: install-dev browser pgbouncer ## Run every test (ARGS="-k name" chooses)
	$(PYTHON) -m pytest -n 2 $(ARGS)

soak: install-dev ## Search for illegal histories ten times as long as the tests do
	PAYAGG_TEST_ROUNDS=200 $(PYTHON) -m pytest -n 2 -k "race_grid or payment_machine" $(ARGS)

fuzz: install-dev ## Try the running product with Schemathesis (ARGS="--cases 500 --seed 7")
	PYTHONPATH=src:. $(PYTHON) -m tests.fuzz.run $(ARGS)

check: install-dev ## Check format, lint, types, import directions, locks and generated documents
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	.venv/bin/lint-imports
	$(PYTHON) tools/lock.py --check
	$(PYTHON) -m payagg.entrypoints.cli.docs --check

docs: install-dev ## Write the documents that are generated from code
	$(PYTHON) -m payagg.entrypoints.cli.docs

site: install ## Write the documentation as files (ARGS="--into FOLDER")
	$(PYTHON) -m payagg.entrypoints.cli.site $(ARGS)

bench: install-dev ## Measure against pgbench and a plain build (ARGS="--help")
	$(PYTHON) -m benchmarks.run $(ARGS)

lock: install-dev ## Choose the newest dependencies and write both lock files
	$(PYTHON) tools/lock.py

clean: ## Delete .venv and caches; the data under .payagg stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis tests/node/node_modules
	find src tests benchmarks tools -name __pycache__ -prune -exec rm -rf {} +

install:
	@sh tools/install.sh requirements.lock

install-dev:
	@sh tools/install.sh requirements-dev.lock

browser:
	@sh tools/browser.sh

pgbouncer:
	@sh tools/pgbouncer.sh
