# `make demo` and `make test` set everything up by themselves, once.
#
#   make demo        the tour: a small shop on local Spark, live views kept exact under a minute of changes
#   make test        lint, format, types and the quick tests
#   make test-slow   the long tests
#   make bench       the benchmarks: tables of ratios and targets, benchmarks/results/*.json and plots; about an hour
#   make bench-peers the same changes through other engines, which it installs into .venv-peers
#   make lint        lint, format and types only;  make format mends what can be mended
#   make lock        the newest versions that fit pyproject.toml into requirements.lock
#   make clean       removes the environment and all caches
#
# Another interpreter than python3: make setup PYTHON=python3.12

PYTHON ?=
BIN := .venv/bin
READY := .venv/ready

.DEFAULT_GOAL := demo
.PHONY: setup java demo test test-slow bench bench-peers lint format lock clean

setup: java $(READY)

java:
	@scripts/prerequisites.sh java

$(READY): requirements.lock pyproject.toml scripts/setup.sh
	@PYTHON=$(PYTHON) scripts/setup.sh
	@touch $@

demo: setup
	@$(BIN)/headwater demo

test: lint
	@$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

test-slow: setup
	@$(BIN)/python -m pytest -m slow --numprocesses 2 --dist loadfile

bench: setup
	@$(BIN)/python -m benchmarks

bench-peers: setup
	@$(BIN)/python -m benchmarks.peers

lint: setup
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

format: setup
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format

lock: $(READY)
	@$(BIN)/python scripts/lock.py

clean:
	rm -rf .venv .venv-peers .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
