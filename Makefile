# `make demo` and `make test` do everything from a fresh clone: each makes .venv, installs, runs.
PYTHON ?= python3
VENV ?= .venv
MINIMUM ?= .venv-minimum
PIP = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Tests that need neither torch nor pictures from elsewhere, and together take less than minutes.
LIGHT_TESTS = $(addprefix tests/test_,$(addsuffix .py,\
	corners demo escaping images plan public_api sheet turning versions))

.PHONY: demo test test-minimum lint clean

demo: $(VENV)/.light
	$(VENV)/bin/radialbeams demo

test: lint
	$(VENV)/bin/python -m pytest

# The light install with the lowest versions that it declares. No conftest: that is torch's.
test-minimum: $(MINIMUM)/.light
	$(MINIMUM)/bin/python -m pytest --noconftest $(LIGHT_TESTS)

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

$(MINIMUM)/.light: pyproject.toml constraints-minimum.txt
	$(PYTHON) -m venv $(MINIMUM)
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check \
		-c constraints-minimum.txt -e . pytest hypothesis packaging
	touch $@

clean:
	rm -rf $(VENV) $(MINIMUM)
