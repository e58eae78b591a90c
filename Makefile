# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Files in the order of tests/conftest.py; with bytecode on disk, whatever the shell says: tests start many processes.
PARALLEL := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: demo test test-long test-gpu fuzz crash lint docs dist bench bench-gpu memory bench-peers capabilities papers reproduce format clean setup claims coverage mutants

$(READY): pyproject.toml reproduction/pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gibbsian needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --editable reproduction
	touch $(READY)

setup: $(READY)

demo: $(READY)  ## fit the embedded house votes with both learners
	$(BIN)/gibbsian demo --out-dir demo-output

test: $(READY)  ## every test, doctests included
	$(PARALLEL)

test-long: $(READY)  ## what takes many seconds each: coverage of intervals, figures of papers, a protein family
	$(PARALLEL) -m long

test-gpu: $(READY)  ## what needs a card, on one
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[gpu]'
	$(BIN)/python -m pytest -m gpu -n 8 tests/backends  # most of the time compiles kernels

fuzz: $(READY)  ## hostile calls, command lines and files for a while: SECONDS=300 SEED=0
	$(BIN)/python -m tools fuzz --seconds $(or $(SECONDS),300) --seed $(or $(SEED),0)

crash: $(READY)  ## processes killed at random, full disks, closed streams: SECONDS=300 SEED=0
	$(BIN)/python -m tools crash --seconds $(or $(SECONDS),300) --seed $(or $(SEED),0)

lint: $(READY)  ## style, types, import layers
	$(BIN)/ruff check conftest.py src tests benchmarks reproduction tools
	$(BIN)/ruff format --check conftest.py src tests benchmarks reproduction tools
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)  ## the site with its executed gallery, into docs/_build; a warning is an error
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(BIN)/python -m sphinx -b html -W --keep-going -j 2 -q docs/site docs/_build

dist: $(READY)  ## wheel and sdist, checked, and the wheel tried in an environment of its own
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m tools try_wheel dist

format: $(READY)
	$(BIN)/ruff check --fix src tests benchmarks reproduction tools
	$(BIN)/ruff format src tests benchmarks reproduction tools

capabilities: $(READY)  ## docs/capabilities.md, by trying
	$(BIN)/python -m tools capabilities --write

papers: $(READY)  ## docs/papers.md, where the library does what the papers describe
	$(BIN)/python -m tools papers_page --write

reproduce: $(READY)  ## every figure and table of the papers, and reproduction/docs with them
	$(BIN)/gibbsian-reproduce all --out results
	$(BIN)/python -m gibbsian_reproduction.docs results reproduction/docs

coverage: $(READY)  ## do 95% intervals of log Z hold? twelve families of a hundred machines: JOBS=2 MACHINES=100
	$(BIN)/python benchmarks/interval_coverage.py --jobs $(or $(JOBS),2) --machines $(or $(MACHINES),100)

claims: $(READY)  ## every claim of the papers that reproduction/docs has as holding, with all its trials
	$(BIN)/gibbsian-reproduce all --out results --quiet
	$(BIN)/python -m tools claims results

mutants: $(READY)  ## plant errors in the mathematics and see whether a test notices (20 minutes of tests, then seconds each: SECONDS=7200)
	nice -n 10 $(BIN)/python -m tools mutants --number 500 --seconds $(or $(SECONDS),7200) --out mutants.jsonl

bench: $(READY)  ## speed, as ratios within one run
	$(BIN)/python benchmarks/run.py

memory: $(READY)  ## memory that is predicted beside what is taken
	$(BIN)/python benchmarks/memory.py

bench-gpu: $(READY)  ## works on a card beside the products and copies they need: bench-output/gpu.md
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[gpu]'
	mkdir -p bench-output
	$(BIN)/python benchmarks/gpu.py --out bench-output/gpu.md

bench-peers: $(READY)  ## beside the peers, in a scratch environment, and how cost grows: docs/performance.md
	$(BIN)/python benchmarks/peers.py

clean:
	rm -rf $(VENV) .peers demo-output bench-output build dist docs/_build docs/site/api docs/site/gallery src/*.egg-info reproduction/src/*.egg-info .pytest_cache .ruff_cache .mypy_cache
	find src tests benchmarks reproduction tools -name __pycache__ -type d -prune -exec rm -rf {} +
