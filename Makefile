# `make` lists what there is to do. Nothing is needed but make and Python 3.11 or newer.

PYTHON ?= python3
CONFIG ?= config/default.yaml

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SNAKEMAKE := $(BIN)/python workflow/run.py
# In parallel, a file at a time, so that a file's fixtures are made once; in the order of tests/conftest.py.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder --durations 10
PIP := $(BIN)/python -m pip --disable-pip-version-check --log $(VENV)/pip.log install
# Of what pip says: what takes long, and what went wrong.
BRIEFLY := 2>&1 | awk '/^ *Downloading .*[MG]B\)/ || /^ERROR/ { print "  " $$0; fflush() }'

SHELL := bash
.SHELLFLAGS := -euo pipefail -c

.DEFAULT_GOAL := help
.PHONY: help env demo smoke notebook federation all retrain publish check test lint pages docs clean

help: ## list what there is to do
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

env: $(READY) ## make the Python environment in .venv, from requirements.lock

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "$(PYTHON) is $$($(PYTHON) --version 2>&1 || true); Python 3.11 or newer is needed: name one as make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "Making the environment in $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing the packages of requirements.lock (once; a few minutes, most of it PyTorch); details in $(VENV)/pip.log"
	@$(PIP) --requirement requirements.lock $(BRIEFLY)
	@$(PIP) --no-deps --no-build-isolation --editable . $(BRIEFLY)
	@touch $@

demo: env ## train three methods on Cora with 5 clients and show the table beside the papers'
	@$(SNAKEMAKE) --configfile config/demo.yaml
	@$(SNAKEMAKE) --configfile config/demo.yaml --quiet all -- results/demo/main/page.html
	@sed '/^## Differences/,$$d' results/demo/main/page.md
	@echo "More is in results/demo/main/page.html"

smoke: env ## run the whole DAG on two tiny synthetic graphs
	@$(SNAKEMAKE) --configfile config/smoke.yaml

notebook: env ## open the guide's notebook in JupyterLab, which is installed first
	@$(PIP) --requirement requirements.lock 'jupyterlab>=4.2' $(BRIEFLY)
	@$(BIN)/jupyter lab docs/guide/quickstart.ipynb

federation: env ## train Cora by FedAvg with a process for each of 3 clients, on Flower; compare with the simulation
	@$(BIN)/python -m feddep.flower cut fedavg --graph cora --clients 3 --set rounds=3 --simulate --output results/federation
	@$(BIN)/python -m feddep.flower train results/federation --output results/federation/federated.json

all: env ## make every table and figure; runs that are in the table of runs are not trained again
	@$(SNAKEMAKE) --configfile $(CONFIG)

retrain: env ## train every run of the benchmark anew, in results/retrained
	@$(SNAKEMAKE) --configfile $(CONFIG) --config output=results/retrained 'records={use: false}'

publish: env ## merge the runs that were trained here into the tables that git keeps
	@$(SNAKEMAKE) publish --configfile $(CONFIG)

check: lint ## check style and types, run the unit tests: a minute
	@$(PYTEST) -m "not dag and not data and not slow"

test: lint ## check style and types, run every test
	@$(PYTEST)

lint: env ## check style, types and the installed packages
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pip check

pages: env ## fill the pages from the tables of results and the methods' declarations
	@$(BIN)/python docs/pages.py
	@$(BIN)/python docs/configuration.py
	@$(BIN)/python docs/release.py

docs: pages ## make the pages of docs/ a site, in site/; fails where a link does not hold
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The pages are in site/index.html"

clean: ## remove what can be made again: the environment, caches, the site, results of demo and smoke
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info results/demo results/smoke site
	find feddep tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
