# `make run` and `make test` set up everything they need by themselves.
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run dev test lint types bench requirements clean

run: $(VENV)/base.stamp
	$(BIN)/python manage.py serve --host $(HOST) --port $(PORT)

dev: $(VENV)/dev.stamp
	OPENSWARM_DEBUG=1 $(BIN)/python manage.py serve --host $(HOST) --port $(PORT) --reload

test: lint
	$(BIN)/pytest

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	git ls-files 'templates/*.html' | xargs $(BIN)/djade --target-version 5.2 --check
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python manage.py makemigrations --check --dry-run
	OPENSWARM_URL=https://openswarm.example $(BIN)/python manage.py check --deploy --fail-level WARNING

bench: $(VENV)/dev.stamp
	$(BIN)/python -m tests.bench

requirements: $(VENV)/dev.stamp
	$(PYTHON) -m venv $(VENV)/tools
	$(VENV)/tools/bin/pip install -q uv
	for file in base dev; do \
	  $(VENV)/tools/bin/uv pip compile pyproject.toml --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --no-emit-find-links \
	    --custom-compile-command "make requirements" \
	    $$([ $$file = dev ] && echo --group dev -c requirements/base.txt) \
	    -q -o requirements/$$file.txt; \
	done

# The two stamps let `make run` work without the developers' tools.
$(VENV)/base.stamp: requirements/base.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --require-hashes -r requirements/base.txt
	touch $@

$(VENV)/dev.stamp: requirements/dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --require-hashes -r requirements/dev.txt
	touch $(VENV)/base.stamp $@

clean:
	rm -rf $(VENV) staticfiles .mypy_cache .ruff_cache .pytest_cache
