# Every command of the project. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.ONESHELL:
VENV := .venv
BIN := $(VENV)/bin
EXPERIMENT ?= experiments/congestion/large.toml
OUT ?= demo

.PHONY: help setup program build demo test test-scale check check-bare fmt generate bench bench-mpi accept docs paper dist test-dist fuzz races audit clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: ## Install what building and testing need (Debian packages only as root)
	@scripts/setup test

program: ## Build the program raddle alone, into .venv/bin
	@scripts/setup build
	PIP_QUIET=1 $(BIN)/maturin develop --release --locked --quiet
	echo "built $(BIN)/raddle"

build: program ## Build all that this machine can: also raddle-switch, raddle-perf and the libraries
	@python3 scripts/build_explorer.py
	scripts/build-extras

demo: program ## Run the large experiment: six congestion-control schemes on 376 nodes; leaves demo/report.html
	@$(BIN)/raddle run $(EXPERIMENT) --out $(OUT)
	echo "open $(OUT)/report.html"

test: setup build ## Run all tests but the long ones (at most 20 minutes from nothing)
	@python3 scripts/run_tests.py

test-scale: setup build ## Run the long tests
	@python3 scripts/run_tests.py --scale

check: setup ## Format, lints, types, spelling and documentation, warnings as errors
	@cargo fmt --all --check
	profile=$${TEST_PROFILE:-dev}
	cargo clippy --workspace --all-targets --profile $$profile --locked --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --profile $$profile --locked --quiet
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy python/raddle tests scripts bench experiments
	$(BIN)/typos
	python3 scripts/check_arrows.py

check-bare: setup ## Check that a build without clang, MPI libraries and OpenSM prints no warning
	@RADDLE_WITHOUT=clang,mpi,opensm cargo clippy --workspace --all-targets --profile $${TEST_PROFILE:-dev} --locked --quiet -- -D warnings

fmt: ## Format everything
	@cargo fmt --all
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format --quiet .

generate: build ## Make the generated files again (a test compares them)
	@python3 scripts/set_version.py
	schema=$$($(BIN)/raddle schema)
	printf '%s\n' "$$schema" > docs/reference/experiment.schema.json
	schema=$$($(BIN)/raddle schema route)
	printf '%s\n' "$$schema" > docs/reference/route.schema.json
	cargo run --release --locked --quiet -p raddle-wire --example wire_tables -- docs/reference/wire.md
	$(BIN)/python scripts/reference.py
	$(BIN)/python scripts/results.py
	RADDLE_WITHOUT=mpi cargo test --profile $${TEST_PROFILE:-dev} --locked --quiet -p raddle-mpi --test border -- --ignored

bench: ## Measure packet-hops per second of the engine alone, one core: 320 and 8,192 hosts
	@cargo build --release --locked --quiet -p raddle-engine --example hop_benchmark
	hop=$${CARGO_TARGET_DIR:-target}/release/examples/hop_benchmark
	$$hop --traffic hpc-mix
	$$hop --traffic hpc-mix --compat
	$$hop --hosts 8192 --traffic permutation --size 256KiB
	$$hop --hosts 8192 --traffic hpc-mix --flows 60000

bench-mpi: setup build ## Measure in-network Allreduce against plain MPI in a lab: limit and value of each ratio (root)
	@$(BIN)/python3 -m bench.mpi

accept: setup build ## Measure every promise that has a number: command, limit, measured, pass or fail
	@$(BIN)/python3 -m bench.accept

paper: setup program ## Draw the picture of paper/paper.md from the run that it describes
	@$(BIN)/python -m scripts.make_paper

dist: ## Make the packages of a release into dist/: wheels, Debian packages, sources, recipes (packaging/README.md)
	@scripts/setup dist
	$(BIN)/python -m scripts.dist

test-dist: dist ## Install the packages into new systems, and run everything there (root)
	@$(BIN)/python -m pytest -q tests/dist

docs: setup program ## Build the site with its gallery and the pages of the crates into target/site/html
	@RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	$(BIN)/python -m scripts.make_site

fuzz: ## Fuzz every parser for MINUTES=1 each (needs cargo-fuzz and a nightly toolchain)
	@for target in $$(cargo +nightly fuzz list); do
	    cargo +nightly fuzz run "$$target" -- -max_total_time=$$((60 * $${MINUTES:-1}))
	done

races: ## Look for data races between the threads of a run (needs a nightly toolchain with rust-src)
	@export RUSTFLAGS="-Zsanitizer=thread" CARGO_TARGET_DIR=target/races
	export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
	cargo +nightly test -Zbuild-std --target "$$(rustc -vV | sed -n 's/^host: //p')" --release --locked \
	    -p raddle-engine --test corrected partitions

audit: ## Check licences and sources of all crates (needs cargo-deny)
	@command -v cargo-deny >/dev/null || { echo "cargo-deny is not installed: cargo install cargo-deny" >&2; exit 1; }
	cargo deny --locked check

clean: ## Remove what was built; results folders that you named stay
	@cargo clean --quiet
	rm -rf $(VENV) demo fuzz/target python/raddle/*.so
