# Two commands set everything up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ifneq ($(wildcard ../shared/data),)
export EVGP_DATA ?= $(abspath ../shared/data)
endif

# For the tests in a real browser; they are skipped without one, except in CI.
CHROMIUM := $(shell command -v chromium || command -v chromium-browser)

.PHONY: browser demo test test-hostile test-label-studio test-slow check format bench reproduce figures docs dist clean

$(VENV)/.installed: pyproject.toml constraints.txt
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/python -m evgp.datasets.bundled digits demo/digits.csv
	$(BIN)/evgp pick demo/digits.csv -k 40 --id image --output demo/picks.csv --report demo/report.html

test: $(VENV)/.installed
	$(BIN)/python -m pytest -m "not slow and not hostile" -n auto --dist loadfile $(ARGS)

test-slow: $(VENV)/.installed
	$(BIN)/python -m pytest -m "not hostile" -n auto --dist loadfile $(ARGS)

# What tries to break evgp; a whole run that passes records its counts for docs/reliability.md.
test-hostile: $(VENV)/.installed
	EVGP_HOSTILE_RECORD=1 $(BIN)/python -m pytest -n auto --dist loadfile $(ARGS) tests/hostile

# The real Label Studio has its own environment: 1 GB, and some minutes the first time.
LABEL_STUDIO := .venv-label-studio

$(LABEL_STUDIO)/.installed: tests/integrations/label_studio/requirements.txt
	@test -d $(LABEL_STUDIO) || $(PYTHON) -m venv $(LABEL_STUDIO)
	$(LABEL_STUDIO)/bin/python -m pip install --quiet --requirement $<
	@touch $@

test-label-studio: $(VENV)/.installed $(LABEL_STUDIO)/.installed
	EVGP_LABEL_STUDIO=$(abspath $(LABEL_STUDIO)/bin/label-studio) \
	  $(BIN)/python -m pytest -v tests/integrations/label_studio $(ARGS)

check: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks

# A study of the paper by name: make reproduce NAME=width
reproduce: $(VENV)/.installed
	$(BIN)/python -m experiments $(NAME) $(ARGS)

figures: $(VENV)/.installed
	$(BIN)/python docs/figures/make.py
	for script in examples/*.py; do $(BIN)/python $$script examples/output || exit 1; done

docs: $(VENV)/.installed
	$(BIN)/python -m evgp.cli.docs docs/cli.md
	$(BIN)/sphinx-build -q -W --keep-going docs docs/_build
	@echo "open docs/_build/index.html"

dist: $(VENV)/.installed
	$(BIN)/python -m hatchling build

browser:
ifeq ($(CHROMIUM),)
	@command -v apt-get > /dev/null || { echo "install chromium with your package manager, then go on"; exit 1; }
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get update
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get install --yes --no-install-recommends chromium
else
	@echo "$(CHROMIUM) is there"
endif

clean:
	rm -rf $(VENV) $(LABEL_STUDIO) demo .pytest_cache .mypy_cache .ruff_cache build dist docs/_build .benchmarks-env-*
