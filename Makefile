# A fresh clone needs python3 (3.11 or newer) with pip, and nothing else.
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python
# Hundreds of processes start in the tests: what they compile is kept, whatever the machine's habit.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help run test soak simulate zoo crash-matrix faults planted mutants coverage fuzz atheris scorecard attack pythons check docs site bench scale page lighthouse lock wheel sbom clean install install-dev browser pgbouncer haproxy etcd patroni upgrade-test ha cells cell-move

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: install ## Start everything with demo data and print a tour (ARGS="--port 9000 --fresh")
	@exec .venv/bin/payagg dev $(ARGS)

# Most tests wait for a server or a process, so there are more at once than cores. They are handed out two by two: a
# larger share would leave whoever got the slow ones alone at the end.
test: install-dev browser pgbouncer ## Run every test (ARGS="-k name" chooses)
	$(PYTHON) -m pytest -n 6 --maxschedchunk 2 $(ARGS)

soak: install-dev pgbouncer ## Kill processes and Postgres in 60 rounds, race for long, let the network fail by chance (ARGS="--only pairs")
	PYTHONPATH=src:. $(PYTHON) -m tests.soak.run $(ARGS)

simulate: install-dev ## Search 100,000 simulated histories (ARGS="--histories 2000"), or tell one (SEED=7)
	@$(PYTHON) -m payagg.testing.simulation --figures tests/figures/simulate.json $(if $(SEED),--seed $(SEED)) $(ARGS)

zoo: install-dev ## Hunt the broken services with the harness and write the table (ARGS="--only TriesOnce" tells one)
	PYTHONPATH=src:. $(PYTHON) -m tests.zoo.run $(ARGS)

crash-matrix: install-dev ## Kill our process, Postgres or its connections at each step of a payment (ARGS="--only w3")
	PYTHONPATH=src:. $(PYTHON) -m tests.crashes.run $(ARGS)

faults: install-dev ## Let the network to Postgres, providers and a merchant fail in every way (ARGS="--only commit")
	PYTHONPATH=src:. $(PYTHON) -m tests.faults.run $(ARGS)

planted: install-dev ## Plant each known defect in a copy of the product, and see its test fail (ARGS="--only signature")
	PYTHONPATH=src:. $(PYTHON) -m tests.planted.run $(ARGS)

coverage: install-dev ## Name the lines of the money's code that no unit test of it runs
	PYTHONPATH=src:. $(PYTHON) -m tests.mutants.coverage

mutants: install-dev ## Change a sample of the money's code, place by place, under its unit tests (ARGS="--only checkout --each 0")
	PYTHONPATH=src:. $(PYTHON) -m tests.mutants.run $(ARGS)

fuzz: install-dev ## Try the running product with Schemathesis (ARGS="--cases 500 --seed 7")
	PYTHONPATH=src:. $(PYTHON) -m tests.fuzz.run $(ARGS)

ha: install-dev haproxy pgbouncer etcd patroni ## Break a Patroni cluster under load, through each route (ARGS="--only frozen --route pgbouncer")
	PYTHONPATH=src:. $(PYTHON) -m tests.ha.run $(ARGS)

cells: install-dev ## Three cells and a router under load, one killed; writes docs/cells.md (ARGS="--seconds 30")
	PYTHONPATH=src:. $(PYTHON) -m tests.cells.run $(ARGS)

atheris: install-dev ## Fuzz each parser of what strangers send, 30 s each (ARGS="--seconds 300 --only url")
	PYTHONPATH=src:. $(PYTHON) -m tests.fuzz_targets.run $(ARGS)

scorecard: install-dev browser ## Take the 25 figures of reliability and write docs/scorecard.md (ARGS="--only 19")
	PYTHONPATH=src:. $(PYTHON) -m tests.scorecard.run $(ARGS)

upgrade-test: install-dev haproxy ## Roll the previous release to this one and back under load (ARGS="--previous v1.2.0")
	PYTHONPATH=src:. $(PYTHON) -m tests.upgrade.run $(ARGS)

attack: install-dev ## Try known attacks on the running product; exit status 1 when one succeeds (ARGS="--only trailers")
	PYTHONPATH=src:. $(PYTHON) -m tests.attack.run $(ARGS)

pythons: install-dev browser ## Try every other Python from 3.11 to 3.14 that this machine has (ARGS="tests/unit")
	@sh tools/pythons.sh $(ARGS)

check: install-dev ## Check format, lint, types, import directions, locks and generated documents
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	$(PYTHON) -m mypy --python-version 3.14 src
	.venv/bin/lint-imports
	$(PYTHON) tools/lock.py --check
	$(PYTHON) -m payagg.entrypoints.cli.docs --check

docs: install-dev ## Write the documents that are generated from code
	$(PYTHON) -m payagg.entrypoints.cli.docs

site: install ## Write the documentation as files (ARGS="--into FOLDER")
	$(PYTHON) -m payagg.entrypoints.cli.site $(ARGS)

bench: install-dev ## Measure against pgbench and a plain build (ARGS="--help")
	$(PYTHON) -m benchmarks.run $(ARGS)

scale: install-dev ## Measure what each step asks of Postgres and write docs/scale.md (ARGS="--requests 1000")
	$(PYTHON) -m benchmarks.scale $(ARGS)

cell-move: install-dev ## Measure a move between two cells and write the table (ARGS="--sizes 1000")
	$(PYTHON) -m benchmarks.cell_move $(ARGS)

page: install-dev browser ## Measure the payer's page on a slow line and write the table (ARGS="--rounds 3")
	$(PYTHON) -m benchmarks.first_paint $(ARGS)

lighthouse: install-dev browser ## Let Lighthouse judge the pages and write the table (ARGS="--only checkout")
	@cd benchmarks/node && npm ci --ignore-scripts --no-audit --no-fund --silent
	$(PYTHON) -m benchmarks.page_quality $(ARGS)

lock: install-dev ## Choose the newest dependencies and write the lock files
	$(PYTHON) tools/lock.py

wheel: install-dev ## Build the package in dist/
	$(PYTHON) -m hatchling build -t wheel -d dist

sbom: install-dev ## List what production installs, and from which commit, as CycloneDX in dist/payagg.cdx.json
	$(PYTHON) tools/sbom.py dist/payagg.cdx.json

clean: ## Delete .venv and caches; the data under .payagg stays
	rm -rf .venv .pythons .patroni .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis tests/node/node_modules benchmarks/node/node_modules
	find src tests benchmarks tools -name __pycache__ -prune -exec rm -rf {} +

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
