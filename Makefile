# Every target sets up what it needs: python3, pip, venv and make are all that a machine must have.
# The environment is .venv; another Python has its own, so `make test PYTHON=python3.13` uses .venv-3.13.
PYTHON ?= python3
ifeq ($(PYTHON),python3)
VENV := .venv
else
VERSION := $(shell $(PYTHON) -c "import sys; print('%d.%d' % sys.version_info[:2])")
$(if $(VERSION),,$(error $(PYTHON) is not a Python that can be run))
VENV := .venv-$(VERSION)
endif
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
RUN_STAMP := $(VENV)/.ready-run
DEV_STAMP := $(VENV)/.ready-dev
DOCS_STAMP := $(VENV)/.ready-docs
PPO_STAMP := $(VENV)/.ready-ppo
DASK_STAMP := $(VENV)/.ready-dask
BROWSER_STAMP := $(VENV)/.ready-browser

.PHONY: help demo test test-slow test-browser test-dask test-ppo fuzz check format bench figures tables docs results beyond dynamics scale clean

help:            ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(RUN_STAMP): $(BIN)/python pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once, about a minute)"
	$(PIP) install -c constraints.txt -e .
	@touch $@

# pip older than 25.1 cannot read dependency groups, so the list is taken from pyproject.toml with the standard library.
GROUP = $$($(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['dependency-groups']['$(1)'])")

$(DOCS_STAMP): $(RUN_STAMP)
	$(PIP) install -c constraints.txt $(call GROUP,docs)
	@touch $@

$(DEV_STAMP): $(DOCS_STAMP)
	$(PIP) install -c constraints.txt $(call GROUP,dev)
	@touch $@

$(PPO_STAMP): $(DEV_STAMP)
	@echo "Adding torch and stable-baselines3 to $(VENV) (once, a few minutes)"
	$(PIP) install -c constraints.txt -e ".[ppo]"
	@touch $@

$(DASK_STAMP): $(DEV_STAMP)
	$(PIP) install -c constraints.txt -e ".[dask]"
	@touch $@

$(BROWSER_STAMP): $(DEV_STAMP)
	$(PIP) install -c constraints.txt $(call GROUP,browser)
	sh tests/browser/get_chromium.sh
	@touch $@

demo: $(RUN_STAMP)  ## simulate a log, learn why values are missing, plan, evaluate: demo/report.html
	rm -rf demo
	$(BIN)/missmdp run icu-smar --steps 10000 -o demo

test: $(DEV_STAMP)  ## the tests that run in minutes
	$(BIN)/pytest -m "not slow and not browser" -n 2 --dist worksteal

test-slow: $(DEV_STAMP)  ## the statistical and exhaustive rest
	$(BIN)/pytest -m "slow and not browser" -n 2 --dist worksteal

test-browser: $(BROWSER_STAMP)  ## reports in a real browser (Chromium)
	$(BIN)/pytest -m browser tests/browser

test-dask: $(DASK_STAMP)  ## experiments on a Dask cluster of two local processes
	$(BIN)/pytest tests/experiments/reproduce/test_dask.py

test-ppo: $(PPO_STAMP)  ## PPO and Gymnasium, with torch and stable-baselines3
	$(BIN)/pytest tests/plan/ppo tests/interop/test_gymnasium*.py
	$(BIN)/pytest tests/cli tests/experiments -k for_real

# The declared minima are for the lowest Python that is supported: `make test-versions PYTHON=python3.11`.
# Newer ones have no builds of them: `make test-newest PYTHON=python3.13`. Old libraries complain about each other.
TEST_TOOLS := hypothesis pandas polars pydot pytest pytest-xdist
LOWEST = $$($(PYTHON) -c "import tomllib; print(*(one.replace('>=', '==') for one in tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']))")
in_versions = $(VENV)-$(1)/bin/python -m $(2)

test-versions: test-lowest test-newest  ## the tests with the lowest declared, and with the newest versions of everything

test-lowest test-newest: test-%:
	rm -rf $(VENV)-$*
	$(PYTHON) -m venv $(VENV)-$*
	$(call in_versions,$*,pip) --disable-pip-version-check --quiet install -e . $(TEST_TOOLS) $(if $(filter lowest,$*),$(LOWEST))
	$(call in_versions,$*,pip) --disable-pip-version-check freeze --exclude-editable
	$(call in_versions,$*,pytest) -m "not slow and not browser" -n 2 --dist worksteal $(if $(filter lowest,$*),-W ignore::DeprecationWarning)

check: $(DEV_STAMP)  ## formatting, lint, strict types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

fuzz: $(DEV_STAMP)  ## hostile files, logs, commands and arguments, 10,000 of each kind; CASES=100 for a quick look
	$(BIN)/python -m fuzz --bounds-check --cases $(or $(CASES),10000)

format: $(DEV_STAMP)  ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(DEV_STAMP)  ## speed, as ratios within one run
	$(BIN)/python -m benchmarks

figures: $(RUN_STAMP)  ## the pictures in docs/
	$(BIN)/python docs/make.py figures

tables: $(RUN_STAMP)  ## the simulated tables in docs/, and the page of commands
	$(BIN)/missmdp reproduce --study bounds -o results
	$(BIN)/missmdp reproduce --study learning -o results
	$(BIN)/python docs/make.py results results
	$(BIN)/python docs/make_commands.py

docs: $(DOCS_STAMP)  ## the documentation as a site: docs/_build/index.html
	$(BIN)/python -m sphinx -E -a -W --keep-going -q -b html docs docs/_build
	@echo "docs/_build/index.html"

results: $(PPO_STAMP)  ## the tables and figures of docs/results, in about an hour
	$(BIN)/missmdp reproduce --profile small -o results
	$(BIN)/python docs/make.py results results

beyond: $(RUN_STAMP)  ## the tables of docs/results that go beyond the paper, in hours; can be stopped and started
	$(BIN)/missmdp reproduce --study beyond -o results
	$(BIN)/missmdp reproduce --study diagnosis -o results
	$(BIN)/missmdp reproduce --study certificates -o results
	$(BIN)/missmdp reproduce --study check-dynamics -o results
	$(BIN)/python docs/make.py results results

dynamics: $(DEV_STAMP)  ## dynamics learned from the log alone, for docs/results, in hours; can be stopped and started
	$(BIN)/missmdp reproduce --study dynamics -o results
	$(BIN)/python docs/make.py results results

scale: $(DEV_STAMP)  ## how cost grows with the model (docs/results/scale.md), in ten minutes; can be stopped and started
	$(BIN)/python -m benchmarks scale --page docs/results/scale.md

clean:           ## remove the environment and what was made
	rm -rf .venv .venv-* demo docs/_build .pytest_cache .ruff_cache .hypothesis .fuzz-kernels
