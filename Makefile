# datamill: `make demo` shows the whole product, `make test` runs every test. Everything lives in .venv.
VENV ?= .venv
PY := $(VENV)/bin/python
MODEL ?= smollm2
export OMP_NUM_THREADS ?= 2
.DEFAULT_GOAL := help
.PHONY: help install install-dev demo test test-fast lint format docs bench clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

install:  ## the light pinned set (core and CPU training)
	@scripts/install.sh light

install-dev:  ## the light set and what tests and linters need
	@scripts/install.sh dev

demo: install  ## from a sentence to clean data, a trained adapter and a report (MODEL=smollm2|tiny)
	@$(PY) examples/make_math_raw.py
	@$(VENV)/bin/datamill ask "build a math reasoning SFT set and train with LESS" \
	  -i examples/data/math_raw.jsonl -m rules --train-model $(MODEL) --approve

test: install-dev lint  ## all linters and tests
	@$(PY) -m pytest

test-fast: install-dev  ## unit, property and golden tests (under two minutes)
	@$(PY) -m pytest tests/unit tests/property tests/golden -m "not slow and not train" -q

lint: install-dev  ## ruff, mypy strict, layers
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

format: install-dev  ## format and fix what ruff can fix
	@$(VENV)/bin/ruff format .
	@$(VENV)/bin/ruff check --fix .

docs: install-dev  ## regenerate docs that are made from code
	@$(PY) scripts/make_docs.py

clean:  ## remove build products and caches (never data, runs or the environment)
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
