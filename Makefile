# `make demo` and `make test` work from a bare clone: they make .venv, install the tested versions, then run.
PYTHON ?= python3
WORKERS ?= 3
BIN := .venv/bin
INSTALLED := .venv/installed

.PHONY: demo picture docs test pytest test-all test-gpu bench coverage lint install clean

demo: $(INSTALLED)
	$(BIN)/harness compare demo --workdir work/demo --executor processes

# The picture in README.md: the demo's report, by a Chromium on PATH.
picture: $(INSTALLED)
	test -f work/demo/reports/demo/index.html || $(MAKE) demo
	$(BIN)/harness report build demo --workdir work/demo --format html
	chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --window-size=1180,1500 \
		--screenshot=reports/images/report.png "file://$(CURDIR)/work/demo/reports/demo/index.html?theme=light"

# The documentation as a site, build/site/index.html; it needs no network.
docs: $(INSTALLED)
	$(BIN)/python -m docs.site build/site

# The order of files is that of tests/conftest.py: the long ones first, so that no worker is left with one at the end.
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 10

# Lint and tests run side by side: the tests wait for processes and timeouts often enough.
test: $(INSTALLED)
	$(MAKE) -j 2 --no-print-directory lint pytest

pytest: $(INSTALLED)
	$(PYTEST)

# Also what takes minutes: the tests marked `campaign`, each beside a shorter one of the same fact.
test-all: lint
	$(PYTEST) -m "campaign or not campaign"

# What only a GPU shows: bf16, several processes over NCCL, resuming, micro-batches, placement. One after the other.
test-gpu: $(INSTALLED)
	$(BIN)/python -m pytest -q -n 0 -rs -m gpu

# Ratios to the libraries that we are measured by, as a table (docs/speed.md): on a machine with nothing else to do.
bench: $(INSTALLED)
	$(BIN)/python -m tools.benchmarks.ratios

# Processes that tests start are counted too; .coverage holds the details (coverage html).
coverage: $(INSTALLED)
	$(PYTEST) --cov --cov-report=term:skip-covered

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

install: $(INSTALLED)

# torch comes first and by itself: it is by far the largest, and an index with builds for this machine may offer only it.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name it with: make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv .coverage .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
