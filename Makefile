# Every target works from a fresh clone: it makes .venv, installs what it needs, and runs.
PYTHON ?= python3
VENV ?= .venv
MINIMUM ?= .venv-minimum
PIP = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Processes that run tests side by side.
WORKERS ?= 2

# Tests that need neither torch nor pictures from elsewhere, and together take less than minutes.
LIGHT_TESTS = $(addprefix tests/test_,$(addsuffix .py,\
	corners demo escaping images plan public_api sheet turning versions))

.PHONY: demo test test-quick test-minimum test-ray lint docs build clean

demo: $(VENV)/.light
	$(VENV)/bin/radialbeams demo

# Tests that measure time run alone, after the others.
test: lint
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not serial"
	$(VENV)/bin/python -m pytest -m serial

# For work in progress: the tests that take seconds.
test-quick: $(VENV)/.dev
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not serial"

# The light install with the lowest versions that it declares. No conftest: that is torch's.
test-minimum: $(MINIMUM)/.light
	$(MINIMUM)/bin/python -m pytest --noconftest $(LIGHT_TESTS)

# The engines, on a Ray cluster and an object store on this machine; `make test` skips them.
test-ray: $(VENV)/.ray
	$(VENV)/bin/python -m pytest tests/engines

lint: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# The site goes to site/. A dead link is a warning, and --strict turns it into an error.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

# Wheel and source archive go to dist/.
build: $(VENV)/.build
	$(VENV)/bin/python -m build

# The light install (no torch) and the one for work on the project share a folder: the second adds to the first.
$(VENV)/.light: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/.light
	$(PIP) -e ".[dev]"
	touch $@

$(VENV)/.ray: $(VENV)/.dev
	$(PIP) -e ".[test-ray]"
	touch $@

$(VENV)/.docs: $(VENV)/.light
	$(PIP) -e ".[docs]"
	touch $@

$(VENV)/.build: $(VENV)/.light
	$(PIP) build
	touch $@

$(MINIMUM)/.light: pyproject.toml constraints-minimum.txt
	$(PYTHON) -m venv $(MINIMUM)
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check \
		-c constraints-minimum.txt -e . pytest hypothesis packaging
	touch $@

clean:
	rm -rf $(VENV) $(MINIMUM) site dist
