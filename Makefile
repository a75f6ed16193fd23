# `make run` and `make test` set up all they need by themselves, in .venv.
# Needed beforehand: make, and Python 3.11 or newer with its venv module.
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
VENV := .venv
BIN := $(VENV)/bin

# A .venv whose Python is gone, too old or without pip is made anew.
_ := $(shell [ ! -e $(VENV) ] || $(BIN)/python -c \
	'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || rm -rf $(VENV))

.PHONY: run dev install doctor test test-postgres lint bench screenshots requirements clean

run: $(VENV)/base.stamp  ## start OpenSwarm; PORT=8731 and HOST=… choose the address
	@$(BIN)/python manage.py serve --host $(HOST) --port $(PORT)

dev: $(VENV)/dev.stamp  ## the same for development: restarts when the code changes
	@OPENSWARM_DEBUG=1 $(BIN)/python manage.py serve --host $(HOST) --port $(PORT) --reload

install: $(VENV)/base.stamp  ## only set up .venv, as for a service

doctor: $(VENV)/base.stamp  ## check everything that agents need
	@$(BIN)/python manage.py doctor

# What speaks to the database and knows a difference; the whole suite runs on SQLite.
ON_POSTGRES := tests/domain tests/live tests/admin tests/web/test_history.py \
	tests/gateway/test_ledger.py tests/execution/test_transcript_store.py \
	tests/management/test_seed_history.py tests/management/doctor/test_search.py \
	--ignore=tests/domain/test_invariants.py --ignore=tests/domain/test_snapshots.py \
	--ignore=tests/domain/test_branch_machine.py

# Two files of tests at a time on two cores; most of their time is waiting for CLIs.
test: lint test-postgres  ## lint, then all tests
	$(BIN)/python -m pytest -n auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder

# --reuse-db: the cluster goes with the run, so nobody needs to drop its database.
test-postgres: $(VENV)/dev.stamp  ## the tests of the database's users on PostgreSQL
	@if [ "$$CI" = true ] || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null; then \
	  $(BIN)/python -m pytest --ds=tests.settings_postgres --reuse-db \
	    -m "not e2e and not cli" $(ON_POSTGRES); \
	else echo "Skipped: the tests on PostgreSQL need it (apt install postgresql)."; fi

lint: $(VENV)/dev.stamp
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	git ls-files 'templates/*.html' | xargs $(BIN)/djade --target-version 5.2 --check
	$(BIN)/python $(BIN)/lint-imports
	$(BIN)/python -m mypy
	$(BIN)/python manage.py makemigrations --check --dry-run
	OPENSWARM_URL=https://openswarm.example $(BIN)/python manage.py check --deploy --fail-level WARNING

bench: $(VENV)/dev.stamp  ## measure streaming, first words and memory; writes docs/performance.md
	$(BIN)/python -m tests.bench

screenshots: $(VENV)/dev.stamp  ## the pictures of the README, from a real server
	$(BIN)/python -m tests.screenshots

requirements:  ## pin the dependencies of pyproject.toml anew
	$(PYTHON) -m venv $(VENV)/tools
	$(VENV)/tools/bin/python -m pip install -q uv
	for file in base dev; do \
	  $(VENV)/tools/bin/uv pip compile pyproject.toml --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --no-emit-find-links \
	    --custom-compile-command "make requirements" \
	    $$([ $$file = dev ] && echo --group dev -c requirements/base.txt) \
	    -q -o requirements/$$file.txt; \
	done

# Two stamps, so that `make run` needs no developer's tools.
$(VENV)/base.stamp: requirements/base.txt | $(BIN)/python
	@echo "Installing what OpenSwarm needs into $(VENV); the agents' CLI alone is 400 MB."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt | $(BIN)/python
	@echo "Installing what the tests need into $(VENV); the agents' CLI alone is 400 MB."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r $<
	@touch $(VENV)/base.stamp $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "OpenSwarm needs Python 3.11 or newer. If you have one: make run PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

clean:  ## remove what was installed and cached, never the data in var/
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
