# Two commands do everything on a machine with Python 3.11: `make chat` and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
DATA ?= data
BENCHES ?= retrieval nested_kv eviction prompt_growth turn_overhead throughput search footprint erasure timers openers tasks
# Measured with the whole bot as a process, against a platform's local server: the round trip, and a soak of 2,000 people.
PROCESSES ?= measure_discord measure_slack soak_discord
# What the long chaos run does on each platform: `make soak SOAK="--minutes 60 --faults 0"` watches the memory for an hour.
# Before that, a kill at every named point of a turn, one by one.
POINTS ?= --processes 2 --people 60 --messages 900 --kinds kill_at --faults 9 --seed 7
SOAK ?= --processes 3 --people 300 --messages 5000 --faults 100 --seed 7
# The whole suite; `make test TESTS=tests/memory` runs a part of it.
TESTS ?= tests
# Tests mostly wait for processes, so three run at once even on two cores.
WORKERS ?= $(shell test `getconf _NPROCESSORS_ONLN` -gt 3 && echo auto || echo 3)

.PHONY: chat run setup test check soak lint format bench docs lock clean help

help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile

chat: $(VENV)/.ready ## talk to the bot in the terminal
	@$(BIN)/bot chat

run: $(VENV)/.ready ## run the bot as a server process
	@$(BIN)/bot run

setup: $(VENV)/.ready-dev ## virtual environment with everything, locked

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Keepsake needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Set PYTHON=/path/to/python3.11")'
	@echo "Making the virtual environment ..."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: requirements.lock pyproject.toml | $(VENV)/bin/python
	@echo "Installing the locked dependencies (about a minute, once) ..."
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.ready-dev: requirements-dev.lock $(VENV)/.ready
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@touch $@

test: $(VENV)/.ready-dev ## run all tests
	@$(BIN)/python -m pytest -n $(WORKERS) --durations=20 --durations-min=1 $(TESTS)

check: $(VENV)/.ready-dev ## style, types and the tests that the uncommitted change touches
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
	@$(BIN)/python -m pytest -n $(WORKERS) `$(BIN)/python -m tests.touched`

soak: $(VENV)/.ready-dev ## run the full sets: the bot under load while everything it depends on is killed, every vendor, 200 lives
	@failed=; for platform in discord slack; do \
	  echo; echo "== a kill at every point of a turn on $$platform"; $(BIN)/python -m tests.chaos.run --platform $$platform $(POINTS) || failed=1; \
	  echo; echo "== chaos on $$platform"; $(BIN)/python -m tests.chaos.run --platform $$platform $(SOAK) || failed=1; \
	  echo; echo "== overload on $$platform"; $(BIN)/python -m tests.chaos.overload --platform $$platform || failed=1; \
	done; \
	echo; echo "== whatever the tests take a sample of"; $(BIN)/python -m pytest -n $(WORKERS) --full -m full $(TESTS) || failed=1; \
	$(BIN)/python -m pytest -n $(WORKERS) --lives 200 tests/memory/test_lives.py || failed=1; \
	test -z "$$failed"

lint: $(VENV)/.ready-dev ## style, types, formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(VENV)/.ready-dev ## format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(VENV)/.ready-dev ## print the figures (DATA=path to the evaluation data; BIG=1 searches a million messages)
	@failed=; for name in $(BENCHES); do \
	  echo; echo "== $$name"; \
	  case $$name in retrieval) data=$(firstword $(wildcard $(DATA)/locomo) $(DATA));; *) data=$(DATA);; esac; \
	  $(BIN)/bot bench $$name --data $$data || failed="$$failed $$name"; \
	done; for name in $(PROCESSES); do \
	  echo; echo "== $$name"; \
	  $(BIN)/python -m tests.scenarios.$$name || failed="$$failed $$name"; \
	done; test -z "$$failed" || { echo; echo "Missed a goal, or failed:$$failed"; exit 1; }

docs: $(VENV)/.ready-dev ## regenerate docs/configuration.md and docs/pictures/chat.svg
	@$(BIN)/python -m bot.config.documentation > docs/configuration.md
	@$(BIN)/python -m tests.scenarios.picture docs/pictures/chat.svg

clean: ## remove the virtual environment
	rm -rf $(VENV)

lock: ## regenerate the lock files (needs uv)
	uv pip compile pyproject.toml --extra install $(LOCK) -o requirements.lock
	uv pip compile pyproject.toml --extra install --extra dev -c requirements.lock $(LOCK) -o requirements-dev.lock
LOCK = --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --upgrade --quiet
