# `make demo` and `make test` do everything from a fresh clone: each makes .venv, installs, runs.
PYTHON ?= python3
VENV ?= .venv
PIP = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint clean

demo: $(VENV)/.light
	$(VENV)/bin/radialbeams demo

test: lint
	$(VENV)/bin/python -m pytest

lint: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# The light install (no torch) and the one for work on the project share a folder: the second adds to the first.
$(VENV)/.light: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/.light
	$(PIP) -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV)
