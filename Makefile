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
.PHONY: help run test soak cluster-test image lint rules types format generate bench bench-peers docs screenshots lock browser model clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

# Without a key the guide answers; a small model is downloaded meanwhile, and is then one card away.
run: $(RUN_READY) ## Start Roost: pages, server and agents (ARGS="--port 8600")
	@{ .venv/bin/roost models pull --if-needed > /dev/null 2>&1 & } ; exec .venv/bin/roost up $(ARGS)

# Hundreds of tests start Roost: each would compile it again. Four processes on two cores: a test waits for programs, timers
# and pages for about half of its time. Types are checked meanwhile, with the processor time that the tests leave.
test: $(DEV_READY) ## Check and test everything (PYTEST_ARGS="-k mail -x")
ifeq ($(PYTEST_ARGS),)
	@$(MAKE) --no-print-directory rules
	@echo "Checking types and running the tests …"
	@mkdir -p .cache; nice $(MAKE) --no-print-directory types > .cache/types.txt 2>&1 & types=$$!; \
		unset PYTHONDONTWRITEBYTECODE; $(MAKE) --no-print-directory browser model && \
		$(PYTHON_IN_VENV) -m pytest -p no:cacheprovider -p tools.share_tests --processes 4; tests=$$?; \
		wait $$types; types=$$?; cat .cache/types.txt; exit $$((tests ? tests : types))
else
	@$(MAKE) --no-print-directory lint browser model
	@echo "Running the tests …"
	@$(PYTHON_IN_VENV) -m pytest $(PYTEST_ARGS)
endif

soak: $(DEV_READY) ## Test at full size and with many seeds (an hour)
	@$(PYTHON_IN_VENV) -m pytest -m soak --timeout=1800
	@$(PYTHON_IN_VENV) -m pytest --hypothesis-profile=long --timeout=0 tests/properties

TWO_CONNECTIONS := fences takeovers nodes ownership
CLUSTER_TESTS := tests/cluster tests/runtime/cluster tests/testing/test_cluster*.py tests/transports \
	$(TWO_CONNECTIONS:%=tests/contracts/sql/test_%.py) tests/contracts/test_two_processes.py \
	tests/faults/test_vanished_server.py tests/contracts/test_transports.py
cluster-test: $(DEV_READY) ## Test a cluster under many faults (an hour)
	@$(PYTHON_IN_VENV) -m pytest -s -m "soak or not soak" --timeout=600 $(CLUSTER_TESTS)

image: ## Build the container image and start it; without a container engine, in a chroot (as root)
	@$(firstword $(wildcard $(PYTHON_IN_VENV)) python3) tools/build_image.py

lint: rules types ## Check format, rules and types

rules: $(DEV_READY)
	@echo "Checking format and rules …"
	@$(PYTHON_IN_VENV) -m ruff format --check --quiet $(CODE)
	@$(PYTHON_IN_VENV) -m ruff check --quiet $(CODE)

types: $(DEV_READY)
	@echo "Checking types …"
	@$(PYTHON_IN_VENV) -m mypy --num-workers auto $(CODE)

format: $(DEV_READY) ## Format the code and fix what can be fixed
	@$(PYTHON_IN_VENV) -m ruff check --fix $(CODE)
	@$(PYTHON_IN_VENV) -m ruff format $(CODE)

generate: $(DEV_READY) ## Write the JavaScript client and the HTTP reference after a change of a method
	@$(PYTHON_IN_VENV) tools/javascript_client.py
	@$(PYTHON_IN_VENV) tools/http_reference.py

bench: $(DEV_READY) ## Measure what is fast (ARGS="…")
	@$(PYTHON_IN_VENV) -m bench $(ARGS)

bench-peers: $(DEV_READY) ## Measure peers and Roost in turn (half an hour; ARGS="--pairs 1 autogen")
	@$(PYTHON_IN_VENV) -m bench.peers $(ARGS)

docs: $(DEV_READY) ## Build the docs as a site with search, in .cache/site
	@NO_MKDOCS_2_WARNING=1 $(PYTHON_IN_VENV) -m mkdocs build

SHOWN := looks compose attachments first_visit branches find_and_export thoughts tour_panel \
	agents_page runs_page mail_page approvals_page meetings_page monitor_page
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
	@echo uv | $(subst pyproject.toml,-,$(COMPILE)) --output-file requirements/uv.txt
	@for peer in autogen langgraph apscheduler; do \
		$(subst pyproject.toml,requirements/peers/$$peer.in,$(COMPILE)) --output-file requirements/peers/$$peer.txt; done
	@$(COMPILE) --all-extras --group dev --output-file requirements/dev.txt
	@$(COMPILE) --extra ui --extra postgres --extra nats --extra llm --extra mcp --extra local --group build --constraint requirements/dev.txt --output-file requirements/run.txt

clean: ## Remove all that was made: environment, caches, builds
	@rm -rf .venv .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.installed-%: $(PYTHON_IN_VENV)
	@sh tools/setup_venv.sh $(firstword $(subst -, ,$*))
	@touch $@

# A missing or dangling interpreter makes the stamps out of date; setup_venv.sh makes a new one.
$(PYTHON_IN_VENV): ;
