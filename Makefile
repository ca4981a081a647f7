# `make demo` and `make test` work from a bare clone: they make .venv, install the tested versions, then run.
PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
INSTALLED := .venv/installed

.PHONY: demo picture test lint install clean

demo: $(INSTALLED)
	$(BIN)/harness compare demo --workdir work/demo

# The picture in README.md: the demo's report, by a Chromium on PATH.
picture: $(INSTALLED)
	test -f work/demo/reports/demo/index.html || $(MAKE) demo
	$(BIN)/harness report build demo --from work/demo --format html
	$(BIN)/python -m reports.write.screenshot work/demo/reports/demo/index.html reports/images/report.png

test: lint
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile

lint: $(INSTALLED)
	$(BIN)/ruff check .
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
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
