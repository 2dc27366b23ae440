# Landed. Every target sets up what it needs; only Python 3.11+ and make are assumed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUN    := $(VENV)/.run.stamp
DEV    := $(VENV)/.dev.stamp
CLIENT := client/.venv
AGENTS := $(CLIENT)/.dev.stamp
# One more than there are cores: many tests wait for a process, a lease or a browser.
JOBS   ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 1)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-client simulate mutants choose chaos check bench bench-history docs screenshots lock clean

help:            ## what there is
	@grep -hE '^[a-z-]+: .*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(DEV) $(AGENTS)  ## make .venv and client/.venv from the lock files

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Landed needs Python 3.11 or newer (make PYTHON=python3.12 …)")'
	$(PYTHON) -m venv $(VENV)

# --require-hashes: what is installed is what was locked, whatever registry served it.
# --no-deps: the lock files are complete. --no-compile: Python compiles what is imported, a small part, when it first is.
$(RUN): requirements/run.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes -r requirements/run.txt
	@touch $@

# All that runs it is in the other file as well, at the same versions: one installation is enough.
$(DEV): requirements/dev.txt requirements/run.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes -r requirements/dev.txt
	@touch $(RUN) $@

# The client knows nothing of Django, so it is tested where there is none.
$(AGENTS): client/requirements.txt client/pyproject.toml
	test -x $(CLIENT)/bin/python || $(PYTHON) -m venv $(CLIENT)
	$(CLIENT)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes -r client/requirements.txt
	$(CLIENT)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e client
	@touch $@

# localstripe, which STRIPE=1 puts beside the sandbox, is a development dependency.
demo: $(if $(STRIPE),$(DEV),$(RUN))     ## everything on one machine, with live traffic and faults; STRIPE=1: with refunds by card
	$(BIN)/python manage.py demo $(if $(STRIPE),--stripe) $(ARGS)

# Some machines forbid compiled modules; each of the suite's processes would then compile everything anew.
test: export PYTHONDONTWRITEBYTECODE =
# The client waits for a server most of its time, so it runs beside. Chaos needs the cores for itself.
test: $(DEV) $(AGENTS)  ## the suite on SQLite, what PostgreSQL could change on that with the client beside it, a minute of chaos
	LANDED_TEST_DATABASE=sqlite $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --ignore tests/chaos $(ARGS)
	$(BIN)/python -m tests.together \
	  "LANDED_TEST_DATABASE=postgresql $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --only-database --ignore tests/chaos $(ARGS)" \
	  "cd client && .venv/bin/python -m pytest"
	$(if $(ARGS),,$(BIN)/python -m pytest -n 2 -rP tests/chaos)

test-client: $(RUN) $(AGENTS)  ## the client alone, against a demo that it starts
	cd client && .venv/bin/python -m pytest $(ARGS)

simulate: $(DEV) ## many seeds of the simulation (SEEDS=100000); the first that breaks an invariant is shown step by step
	$(BIN)/python -m tests.simulation $(or $(SEEDS),1000) $(ARGS)

# Everything runs on SQLite, so that is where it is noted what each test meets.
choose: $(DEV)   ## tests/one_database.txt: which tests PostgreSQL need not run again
	notes=$$(mktemp -d) && trap 'rm -rf "$$notes"' EXIT && \
	LANDED_STATEMENTS=$$notes LANDED_TEST_DATABASE=sqlite $(BIN)/python -m pytest -p tests.statements \
	  -n $(JOBS) --dist worksteal --ignore tests/chaos --ignore tests/simulation $(ARGS) && \
	$(BIN)/python -m tests.statements $$notes

mutants: $(DEV)  ## deliberate bugs, and after how many seeds the simulation finds each (some minutes)
	$(BIN)/python -m tests.simulation.bugs $(ARGS)

chaos: export PYTHONDONTWRITEBYTECODE =
chaos: $(DEV)    ## real processes killed, stopped and lied to for MINUTES=5, then all books compared; DATABASE=sqlite, SEED=…
	$(BIN)/python -m tests.chaos --minutes $(or $(MINUTES),5) --database $(or $(DATABASE),postgresql) $(if $(SEED),--seed $(SEED)) $(ARGS)

# Each is one process that uses one core: make -j check.
CHECKS := check-format check-lint check-types check-client check-imports check-migrations check-deployment
.PHONY: $(CHECKS)
check: $(CHECKS)  ## format, lint, types, import rules, migrations, deployment settings

check-client: $(AGENTS)
$(filter-out check-client,$(CHECKS)): $(DEV)
check-format:
	$(BIN)/ruff format --check .
check-lint:
	$(BIN)/ruff check .
check-types:
	$(BIN)/mypy
check-client:
	cd client && .venv/bin/mypy
check-imports:
	$(BIN)/lint-imports
check-migrations:
	$(BIN)/python manage.py makemigrations --check --dry-run
check-deployment:
	$(BIN)/python -m tests.deploy_check

bench: $(DEV)    ## the desk at 1,000 and 1,000,000 intents, on both databases (some minutes)
	$(BIN)/python -m benchmarks.desk $(ARGS)

bench-history: $(DEV)  ## verify_history over 100,000 and 1,000,000 rows, on both databases (some minutes)
	$(BIN)/python -m benchmarks.history $(ARGS)

docs: $(DEV)     ## renew docs/reference.md from the code
	LANDED_MODE=test $(BIN)/python -c 'import django, os; os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"; django.setup(); from config import reference; reference.main()'

screenshots: $(DEV)  ## renew the README's pictures; needs chromium
	$(BIN)/python -m tests.screenshots

lock: $(DEV)     ## renew the lock files (hashes, no addresses); needs uv
	uv pip compile --upgrade --universal --generate-hashes --no-emit-index-url --no-header --extra embedded pyproject.toml -o requirements/run.txt
	uv pip compile --upgrade --universal --generate-hashes --no-emit-index-url --no-header --extra embedded --group dev -c requirements/run.txt pyproject.toml -o requirements/dev.txt
	cd client && uv pip compile --upgrade --universal --generate-hashes --no-emit-index-url --no-header --all-extras --group dev pyproject.toml -o requirements.txt

clean:           ## remove .venv and caches
	rm -rf $(VENV) $(CLIENT) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
