# A fresh machine needs Python 3.11 or newer and make; everything else goes into .venv.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup demo test check bench docs restamp clean

setup: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tripos needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(READY)

demo: $(READY)  ## the main job on the shipped examples, offline; each ends in a certificate
	$(BIN)/tripos search --config configs/two-collections.yaml
	$(BIN)/tripos eval-retrieval --config configs/two-collections.yaml
	$(BIN)/tripos fan-out --config configs/two-collections.yaml
	$(BIN)/tripos eval-corpus --config configs/two-collections.yaml
	$(BIN)/tripos explain --config configs/two-collections.yaml
	$(BIN)/tripos certify --config configs/two-collections.yaml
	$(BIN)/tripos search --config configs/support-kb.yaml
	$(BIN)/tripos eval-retrieval --config configs/support-kb.yaml
	$(BIN)/tripos evidence --config configs/support-kb.yaml
	$(BIN)/tripos eval-generation --config configs/support-kb.yaml
	$(BIN)/tripos certify --config configs/support-kb.yaml
	@echo
	@echo 'Where to look next:'
	@echo '  engagement/full/certificate.json                      what was certified; docs/certification.md says what that means'
	@echo '  engagement/full/retrieval/misses.jsonl                what was not found, each with its story'
	@echo '  engagement/full/generation/generation-misses.jsonl    answers that failed, and why'
	@echo '  $(BIN)/tripos explain q-002 --config configs/support-kb.yaml'

test: $(READY)  ## all tests
	$(BIN)/python -m pytest

check: $(READY)  ## format, lint, types, import contracts, tests
	$(BIN)/ruff format --check src tests benchmarks tools
	$(BIN)/ruff check src tests benchmarks tools
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest

docs: $(READY)  ## regenerate schemas/ and the generated parts of docs/
	$(BIN)/python tools/generate.py

restamp: $(READY)  ## after changing the example's corpus, policy or depth, and reading its answers again
	$(BIN)/python tools/restamp.py

bench: $(READY)  ## measure; figures go to docs/performance.md
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
