# Nothing is assumed but make, a Python and a package index: each target first makes the environment it needs.

BIN := .venv/bin
STAMP := .venv/.installed
# Most tests wait for processes and databases, so more run at once than there are cores.
PARALLEL := -n 4 --dist worksteal
GENERATED := src/adapters/grpc/generated
PROTOS := leaseq/v1/queue.proto leaseq/v1/admin.proto

# The stamp holds the folder it was made for: a copied or moved checkout would run the code of the old place.
STALE := $(shell test -x $(BIN)/python && test "`cat $(STAMP) 2>/dev/null`" = "$(CURDIR)/.venv" || echo stale)

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help dev demo fmt lint type test test-unit test-field soak mutants mutants-domain \
	mutants-sqlite mutants-postgres bench cov proto proto-fresh build wheel ci stale

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

dev: $(STAMP) ## Make .venv: leaseq (editable) and every tool
	@echo "ready: $(BIN)/leaseq, $(BIN)/python"

demo: $(STAMP) ## Watch a queue at work, and a worker that is killed
	$(BIN)/leaseq demo

fmt: $(STAMP) ## Format the code and apply the linter's safe fixes
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

lint: $(STAMP) ## Check style, format and who imports whom
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo

type: $(STAMP) ## Check types
	$(BIN)/mypy

test: $(STAMP) ## Run all tests, on a real PostgreSQL; ARGS="-k lease" chooses
	$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

test-unit: $(STAMP) ## Run the unit tests: no I/O, seconds in all
	$(BIN)/python -m pytest tests/unit $(ARGS)

test-field: $(STAMP) ## Run what concerns PostgreSQL on each version here, roles and PgBouncer too; long
	scripts/test-field.sh $(BIN)/python $(ARGS)

soak: $(STAMP) ## Run the long checks, for minutes: they are no part of `make test`
	$(BIN)/python -m pytest tests/soak -p no:randomly $(ARGS)

mutants: mutants-domain mutants-sqlite mutants-postgres ## See a test fail for each flipped comparison, in Python and SQL; long

MUTANTS := $(BIN)/python scripts/mutants.py

mutants-domain: $(STAMP)
	$(MUTANTS) src/domain tests/unit $(ARGS)

mutants-sqlite: $(STAMP)
	$(MUTANTS) migrations/sqlite tests/integration/test_schema_sqlite.py $(ARGS)
	$(MUTANTS) --sql src/adapters/sqlite $(addprefix tests/integration/test_, \
		sqlite_storage.py::TestSqliteTasks sqlite_storage.py::TestSqliteQueues \
		sqlite_unreadable.py sqlite_cost.py migrations_sqlite.py) $(ARGS)

mutants-postgres: $(STAMP)
	$(MUTANTS) --postgres migrations/postgres tests/integration/test_schema_postgres.py $(ARGS)
	$(MUTANTS) --postgres --sql src/adapters/postgres $(addprefix tests/integration/test_, \
		postgres_storage.py::TestPostgresTasks postgres_storage.py::TestPostgresQueues \
		postgres_rows.py postgres_races.py postgres_plans.py migrations_postgres.py) $(ARGS)

bench: $(STAMP) ## Measure speed, and check the ratios that have to hold; ARGS=--quick for a minute
	PYTHONPATH=tests $(BIN)/python bench/run.py $(ARGS)

cov: $(STAMP) ## Run all tests with branch coverage; the domain must reach 100 %
	$(BIN)/python -m pytest --cov --cov-report=xml --cov-report=term:skip-covered $(ARGS)
	$(BIN)/coverage report --include='src/domain/*' --fail-under=100 --skip-covered --show-missing

proto: .venv-proto/.installed ## Regenerate the gRPC code from proto/
	scripts/generate.sh .venv-proto/bin $(GENERATED) $(PROTOS)

proto-fresh: .venv-proto/.installed
	scripts/generate.sh .venv-proto/bin build/proto-fresh $(PROTOS)
	diff -ru --exclude=__init__.py --exclude=__pycache__ $(GENERATED) build/proto-fresh

build: $(STAMP) ## Build the source distribution and the wheel into dist/
	rm -rf build dist
	$(BIN)/python -m build --quiet

wheel: build
	scripts/check-wheel.sh $(BIN)/python dist/*.whl

ci: $(STAMP) ## Check everything as CI does: lint, types, generated code, wheel, tests
	@for step in lint type proto-fresh wheel test; do printf '\n=== %s\n' $$step; $(MAKE) $$step || exit 1; done

stale:

$(STAMP): pyproject.toml $(STALE)
	scripts/environment.sh .venv --group dev --editable '.[server]'

# Apart from .venv: the generator is held back on purpose (see the group's comment), the rest is not.
.venv-proto/.installed: pyproject.toml
	scripts/environment.sh .venv-proto --group proto
