# Every target works from a fresh clone: it makes .venv, installs what it needs, and runs.
PYTHON ?= python3
VENV ?= .venv
MINIMUM ?= .venv-minimum
PIP = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Processes that run tests side by side.
WORKERS ?= 2

# Tests that need neither torch nor pictures from elsewhere, and together take less than minutes.
LIGHT_TESTS = $(addprefix tests/,$(addsuffix .py,\
	test_demo test_escaping test_sheet test_versions \
	batch/test_plan images/test_corners images/test_images images/test_turning))

.PHONY: demo test test-quick test-minimum lint docs build clean

demo: $(VENV)/.light
	$(VENV)/bin/radialbeams demo

# mypy uses one core, so it runs beside the tests. Tests that measure time run alone, at the end.
test: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy & types=$$!; \
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not serial"; tests=$$?; \
	wait $$types && exit $$tests
	$(VENV)/bin/python -m pytest -m serial

# For work in progress: the tests that take seconds.
test-quick: $(VENV)/.dev
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not serial"

# The light install with the lowest versions that it declares. No conftest: that is torch's.
test-minimum: $(MINIMUM)/.light
	$(MINIMUM)/bin/python -m pytest --noconftest $(LIGHT_TESTS)

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

# The light install has no torch. The development install contains it and goes to the same folder,
# in one step. It leaves byte-compiling to the first import: few of torch's files are ever imported.
$(VENV)/.light: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-compile -e ".[dev]"
	touch $(VENV)/.light $@

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
