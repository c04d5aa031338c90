# Every target works from a fresh clone: it makes .venv, installs what it needs, and runs.
PYTHON ?= python3
VENV ?= .venv
MINIMUM ?= .venv-minimum
PIP = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# The installation leaves byte-compiling to the first import, so Python must be free to store it:
# otherwise each of the many processes that the tests start would compile its modules again.
unexport PYTHONDONTWRITEBYTECODE

# What runs models in a browser, from npm.
RUNTIME ?= .runtime/onnxruntime-web
RUNTIME_VERSION = 1.30.0

# Processes that run tests side by side.
WORKERS ?= 2

# The files with tests that measure time.
SERIAL_TESTS = $(shell grep -rl --include='test_*.py' 'pytest.mark.serial' tests)

# Tests that need neither torch nor pictures from elsewhere, and together take less than minutes.
LIGHT_TESTS = $(addprefix tests/,$(addsuffix .py,\
	test_demo test_escaping test_sheet test_versions \
	batch/test_plan images/test_corners images/test_images images/test_turning))

.PHONY: browser demo test test-all test-quick test-minimum test-ray lint docs page build clean

demo: $(VENV)/.light
	$(VENV)/bin/radialbeams demo

# The browser is installed while pip works. mypy uses one core, so it runs beside the tests. Tests
# that measure time run alone, at the end; only the files that have some are collected again.
test:
	@$(MAKE) --no-print-directory -j 2 $(VENV)/.dev browser
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy & types=$$!; \
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not serial and not long"; tests=$$?; \
	wait $$types && exit $$tests
	$(VENV)/bin/python -m pytest -m "serial and not long" $(SERIAL_TESTS)

# With those that are too long for every change.
test-all: test
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "long and not serial"
	$(VENV)/bin/python -m pytest -m "long and serial" $(SERIAL_TESTS)

# What the tests of the page need and not every machine has. Without it they skip, and say so.
# With INSTALL_CHROMIUM, and as root on Debian, Chromium is installed if there is none.
browser:
	-@command -v npm > /dev/null && timeout 60 $(MAKE) --silent $(RUNTIME)/package.json
	-@test -z "$(INSTALL_CHROMIUM)" || test "$$(id -u)" != 0 || command -v chromium > /dev/null \
		|| timeout 90 sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium' > /dev/null

# For work in progress: the tests that take seconds.
test-quick: $(VENV)/.dev
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not serial and not long"

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

# The page that runs its models in the browser goes to page/, for any web server. Its WebAssembly
# runtime is a package of npm, which checks what it downloads, and is no part of the wheel.
page: $(VENV)/.light $(RUNTIME)/package.json
	$(VENV)/bin/radialbeams page page --runtime $(RUNTIME)/dist

$(RUNTIME)/package.json:
	rm -rf $(RUNTIME) && mkdir -p $(RUNTIME)
	npm pack --silent --pack-destination $(RUNTIME) onnxruntime-web@$(RUNTIME_VERSION)
	tar -xzf $(RUNTIME)/*.tgz -C $(RUNTIME) --strip-components=1 package/package.json \
		$(addprefix package/dist/,ort.wasm.min.mjs ort-wasm-simd-threaded.mjs ort-wasm-simd-threaded.wasm) \
		|| (rm -rf $(RUNTIME); false)
	rm $(RUNTIME)/*.tgz

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
	rm -rf $(VENV) $(MINIMUM) $(RUNTIME) site dist page
