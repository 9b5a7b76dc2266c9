# Every target sets up what it needs by itself: the virtual environment, the packages, and (for `test`) the system programs.
# Start with `make demo`, then `make check` after every edit, and `make test` before a push.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
ARGS ?=
# Most tests wait for servers and processes, so that more of them at once is quicker, also on two cores.
AT_ONCE := -n 3 --dist worksteal
SEEDS ?= 3

# Tests start hundreds of processes, and some machines forbid Python to keep what it compiled: each would compile Rota anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo check test lint types docs bench chaos mutants reliability requirements format system clean

help: ## say what the targets do
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

# Remade when the project's dependencies change, or how the environment is made.
$(INSTALLED): pyproject.toml package-lock.json scripts/venv.sh scripts/assets.py
	@sh scripts/venv.sh $(PYTHON) $(VENV)
	@touch $@

demo: $(INSTALLED) ## a tour: an embedded PostgreSQL, a worker, and a lively mix of jobs
	$(BIN)/rota demo $(ARGS)

lint: $(INSTALLED) ## format, lint, types and layers
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

check: lint ## everything quick (below three minutes); for every edit
	$(BIN)/python -m pytest -m "not slow and not chaos and not browser" $(AT_ONCE) $(ARGS)

types: $(INSTALLED) ## what a user's type checker sees of the public names
	$(BIN)/pyright

test: lint types system ## everything: all tests, documentation and a small chaos; what CI runs
	@# system has fetched npm if it may; in CI nothing may be missing.
	$(BIN)/python scripts/assets.py --tests $(if $(filter true,$(CI)),--strict)
	$(BIN)/python -m pytest -m "not chaos" $(AT_ONCE) --durations=15 $(ARGS)
	@# One after the other: what chaos measures is how long healing takes, and it wants the machine for itself.
	$(BIN)/python -m pytest -m chaos --durations=15 $(ARGS)
	@# system has fetched a second server if it may, and has named it if not.
	@if [ "$${CI:-}" = true ] || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; then set -x; \
	ROTA_TEST_POSTGRES=system $(BIN)/python -m pytest tests/conformance tests/stores/postgres $(AT_ONCE); fi
	@# The contract again, with a pooler in transaction mode between every test and its server.
	@if [ "$${CI:-}" = true ] || command -v pgbouncer >/dev/null 2>&1 || [ -x /usr/sbin/pgbouncer ]; then set -x; \
	ROTA_TEST_POOLER=pgbouncer $(BIN)/python -m pytest tests/conformance $(AT_ONCE); fi

docs: $(INSTALLED) ## run every example of README.md and docs/
	$(BIN)/python -m pytest tests/docs $(ARGS)

bench: $(INSTALLED) system ## measure Rota beside its peers, in one run
	$(BIN)/python benchmarks/run.py $(ARGS)
	$(BIN)/python scripts/readme_bench.py

chaos: $(INSTALLED) system ## hurt processes and servers for long; SEEDS=20 for more chance, ARGS="-k mixed" for a part
	$(BIN)/python -m pytest tests/chaos -m chaos --long --seeds $(SEEDS) --timeout=3600 -rP $(ARGS)

reliability: $(INSTALLED) system ## hurt Rota and four peers alike; ARGS="--only G1,G3 --systems rota,pgqueuer --quick"
	$(BIN)/python benchmarks/reliability/run.py $(ARGS)
	$(BIN)/python scripts/reliability_table.py

mutants: $(INSTALLED) ## break one line at a time, in copies: a named test must notice each; ARGS="-k lease" for a part
	$(BIN)/python scripts/mutants $(ARGS)

requirements: $(INSTALLED) ## which requirements are proven by which tests; rewrites the table in docs/requirements.md
	$(BIN)/python scripts/requirements.py --write

format: $(INSTALLED) ## put the code into its one format
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

system:
	@sh scripts/system.sh

clean: ## remove the environment and what tools left behind; the embedded database in .rota stays
	@if [ -d .rota ] && [ -x $(BIN)/rota ]; then $(BIN)/rota db stop || true; fi
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist build node_modules
	find src tests scripts benchmarks -name __pycache__ -not -path 'benchmarks/venvs/*' -prune -exec rm -rf {} +
