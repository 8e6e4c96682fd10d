# Everything a person does here, by name. `make` alone lists it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

# Handed on to the tool: make test ARGS="-x -k fillet", make mutants ARGS="stale-records-pass"
ARGS ?=
# How often the benches take each figure: fewer for a try.
ROUNDS ?= 5

.DEFAULT_GOAL := help
.PHONY: help setup demo up test check fix chaos bench bench-ticket bench-queue bench-webhooks bench-splat bench-settlement mutants constraints clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv with Tempa and its tools in it

# What it takes to run Tempa, then what it takes to change it; each again only when a pin has changed.
$(RUNS): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
		|| { echo 'Tempa needs Python 3.11 to 3.13; name one: make $(MAKECMDGOALS) PYTHON=python3.11'; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) \
		|| { echo "Python's venv is missing (Debian: apt-get install python3-venv)"; exit 1; }
	$(INSTALL) '.[solid,splat,demo]'
	@touch $@

$(READY): $(RUNS)
	$(INSTALL) '.[solid,splat,dev]'
	@touch $@

demo: $(RUNS) ## make a part and splats, rent a GPU, verify webhooks and the proof, say where the files are
	$(BIN)/tempa demo

up: $(RUNS) ## start the server and stay
	$(BIN)/tempa up $(ARGS)

test: check ## check everything and run the tests
	$(BIN)/python -m pytest $(ARGS)

check: $(READY) ## format, lint and types, without changing a file
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/mypy

fix: $(READY) ## format, and mend what can be mended
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

chaos: $(READY) ## kill processes at every crash point and under load, try the stores for long (two to three hours)
	$(BIN)/python -m pytest -m chaos $(ARGS)

bench: bench-ticket bench-queue bench-webhooks bench-splat bench-settlement ## all benches

bench-ticket: $(READY) ## what a ticket costs around the kernel, beside its targets
	$(BIN)/python bench/ticket.py

bench-queue: $(READY) ## the queue beside other engines and its targets (an hour; ROUNDS=1 for a try)
	$(BIN)/python -m bench.queue.run --rounds $(ROUNDS) $(ARGS)

bench-webhooks: $(READY) ## what a webhook costs and how soon it is there, beside its targets (half an hour)
	$(BIN)/python -m bench.webhooks.run --rounds $(ROUNDS) $(ARGS)

bench-splat: $(READY) ## what splats look like, how fast they are made and written, beside their targets (minutes)
	$(BIN)/python -m bench.splat.run --rounds $(ROUNDS) $(ARGS)

bench-settlement: $(READY) ## how soon payments are heard, verified and credited, beside their targets (minutes)
	$(BIN)/python -m bench.settlement.run --rounds $(ROUNDS) $(ARGS)

mutants: $(READY) ## take the guards out one at a time; a test has to notice each
	$(BIN)/python tools/mutants.py $(ARGS)

constraints: $(READY) ## resolve every dependency anew into constraints.txt
	$(BIN)/python tools/constraints.py

clean: ## remove what was made, .venv included
	rm -rf $(VENV) dist demo-out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
