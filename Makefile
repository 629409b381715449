# InfraRSI. `make` prints the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup demo test lint types boundaries vsix bench-probe red-team bench-example-structure bench-noise bench-check bench-estimate fit-estimate bench-search system-deps schemas clean

help: ## Print the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-24s %s\n", $$1, $$2}'

setup: $(STAMP) ## Create .venv with the locked versions and InfraRSI itself

$(STAMP): requirements.lock pyproject.toml
	@echo "Creating $(VENV) and installing the locked versions (torch included, a few minutes the first time)"
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found. Install Python 3.11 or run: make PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

node_modules/.installed: package.json package-lock.json
	@echo "Installing the extension's build tools (npm)"
	npm ci --no-audit --no-fund --loglevel=error
	@touch $@

system-deps: ## Install the sandbox (bubblewrap) with apt-get, after saying so
	@if command -v bwrap >/dev/null; then echo "bubblewrap is installed"; \
	elif [ "$$(id -u)" != 0 ]; then echo "Needs root: sudo apt-get install bubblewrap (without it the Landlock level is used)"; \
	else echo "Installing bubblewrap with apt-get"; apt-get update -qq && apt-get install -y -qq --no-install-recommends bubblewrap >/dev/null; fi

demo: setup ## Make the dense example faster, for real, and commit the result (7 minutes on two idle cores)
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

test: setup node_modules/.installed lint types boundaries ## Lint, type-check and run every test (under 10 minutes)
	npm run --silent check
	$(BIN)/python -m pytest -q -n 2 --dist loadfile

lint: setup ## ruff
	$(BIN)/ruff format --check core server remote_runner tests benchmarks
	$(BIN)/ruff check core server remote_runner tests benchmarks

types: setup ## basedpyright, strict
	$(BIN)/basedpyright

boundaries: setup ## import-linter
	$(BIN)/lint-imports --no-logo

schemas: setup ## Write docs/schemas and docs/rules.md again from the code
	$(BIN)/python -m infrarsi_server.cli.schemas docs/schemas
	$(BIN)/python -m infrarsi.rules docs/rules.md
	$(BIN)/python -m infrarsi_server.lsp.wire_types

vsix: node_modules/.installed ## Package the VS Code extension into build/infrarsi.vsix
	npm run --silent package

bench-probe: setup ## What the probe costs: build/bench/probe.json
	$(BIN)/python benchmarks/bench_probe.py

red-team: setup ## Run the red team's corpus against both guards; goes on where it was stopped (1 to 2 hours)
	PYTHONPATH=tests $(BIN)/python benchmarks/run_red_team.py $(RECORD)

bench-example-structure: setup ## What attention and its mask are worth in the examples (8 minutes)
	$(BIN)/python benchmarks/example_structure.py

bench-noise: setup ## A/A pairs on this machine, and the promotion protocol under them (8 minutes; goes on)
	$(BIN)/python benchmarks/bench_noise.py

bench-check: setup ## From a keystroke to violations in 2000 lines: build/bench/check.json
	$(BIN)/python benchmarks/bench_check.py

bench-search: setup ## The search against its peers, simulated and recorded: build/bench/search.json (hours; goes on)
	$(BIN)/python benchmarks/bench_search.py $(ARGS)

bench-estimate: setup ## How true estimates of sources left out are: build/bench/estimate.json (20 s)
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/bench_estimate.py

fit-estimate: setup ## Fit the estimate's coefficients to the public runs again
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/fit_estimate.py

clean: ## Remove what the build made; the environment stays
	rm -rf build dist node_modules .ruff_cache .pytest_cache .hypothesis
