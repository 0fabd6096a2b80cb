# `make run` and `make test` do all the set-up there is; the rest is for developers.

PYTHON_IN_VENV := .venv/bin/python
CODE := $(wildcard src tests tools examples bench)
ARGS ?=
PYTEST_ARGS ?=

# A stamp is named after what it stands for: the lock, pyproject.toml and this folder (a venv can't be moved).
stamp = .venv/.installed-$(1)-$(shell { cat requirements/$(1).txt pyproject.toml; pwd; } | cksum | cut -d' ' -f1)
RUN_READY := $(call stamp,run)
DEV_READY := $(call stamp,dev)

# What a person's shell may have set for other projects must not leak into this one.
unexport PIP_PREFIX PIP_REQUIRE_VIRTUALENV PIP_TARGET PIP_USER PYTHONHOME PYTHONPATH
ifneq ($(shell test -d "$${TMPDIR:-/tmp}" && test -w "$${TMPDIR:-/tmp}" && echo usable),usable)
unexport TMPDIR
endif

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test soak lint format bench screenshots lock browser model clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' Makefile

# Without a key the guide answers; a small model is downloaded meanwhile, and is then one card away.
run: $(RUN_READY) ## Start Roost: pages, server and agents (ARGS="--port 8600")
	@{ .venv/bin/roost models pull --if-needed > /dev/null 2>&1 & } ; exec .venv/bin/roost up $(ARGS)

# The checks run while the browser and the model are downloaded. Hundreds of tests start Roost: each would compile it again.
test: $(DEV_READY) ## Check and test everything (PYTEST_ARGS="-k mail -x")
	@$(MAKE) --no-print-directory lint & checks=$$!; $(MAKE) --no-print-directory browser model; set_up=$$?; \
		wait $$checks && exit $$set_up
	@echo "Running the tests …"
ifeq ($(PYTEST_ARGS),)
	@unset PYTHONDONTWRITEBYTECODE; $(PYTHON_IN_VENV) -m pytest -p no:cacheprovider -p tools.share_tests --processes 4
else
	@$(PYTHON_IN_VENV) -m pytest $(PYTEST_ARGS)
endif

soak: $(DEV_READY) ## Test at full size and with many seeds (an hour)
	@$(PYTHON_IN_VENV) -m pytest -m soak --timeout=1800
	@$(PYTHON_IN_VENV) -m pytest --hypothesis-profile=long --timeout=0 tests/properties

lint: $(DEV_READY) ## Check format, rules and types
	@echo "Checking format, rules and types …"
	@$(PYTHON_IN_VENV) -m ruff format --check --quiet $(CODE)
	@$(PYTHON_IN_VENV) -m ruff check --quiet $(CODE)
	@$(PYTHON_IN_VENV) -m mypy --num-workers auto $(CODE)

format: $(DEV_READY) ## Format the code and fix what can be fixed
	@$(PYTHON_IN_VENV) -m ruff check --fix $(CODE)
	@$(PYTHON_IN_VENV) -m ruff format $(CODE)

bench: $(DEV_READY) ## Measure what is fast (ARGS="…")
	@$(PYTHON_IN_VENV) -m bench $(ARGS)

SHOWN := looks compose attachments approval_list first_visit branches find_and_export thoughts
screenshots: $(DEV_READY) browser ## Write every state of the pages to screenshots/, and the README's pictures
	@$(PYTHON_IN_VENV) -m pytest -q $(SHOWN:%=tests/browser/test_%.py)
	@$(PYTHON_IN_VENV) -m tools.pictures

# At home the browser tests are skipped when there is no browser; in CI that is a failure.
browser: $(DEV_READY)
	@$(PYTHON_IN_VENV) tools/setup_browser.py || test -z "$$CI"

# The same with the small model that some tests talk with.
model: $(DEV_READY)
	@test -e .cache/models/smollm2.gguf || ROOST_DATA=.cache .venv/bin/roost models pull || test -z "$$CI"

COMPILE = .cache/lock/bin/uv pip compile pyproject.toml --quiet --upgrade --universal --python-version 3.11 \
	--generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

lock: $(DEV_READY) ## Take the newest versions into requirements/*.txt
	@test -x .cache/lock/bin/uv || $(PYTHON_IN_VENV) -m venv .cache/lock
	@.cache/lock/bin/python -m pip install -qq --upgrade uv
	@$(COMPILE) --all-extras --group dev --output-file requirements/dev.txt
	@$(COMPILE) --extra ui --extra llm --extra mcp --extra local --group build --constraint requirements/dev.txt --output-file requirements/run.txt

clean: ## Remove all that was made: environment, caches, builds
	@rm -rf .venv .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.installed-%: $(PYTHON_IN_VENV)
	@sh tools/setup_venv.sh $(firstword $(subst -, ,$*))
	@touch $@

# A missing or dangling interpreter makes the stamps out of date; setup_venv.sh makes a new one.
$(PYTHON_IN_VENV): ;
