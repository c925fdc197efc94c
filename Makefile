SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

activate := source tools/activate

.PHONY: help setup setup-docker setup-languages mnist box box-mnist test test-rest test-all check bench clean

help: ## List the targets
	@sed -nE 's/^([a-z-]+):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 15

setup: ## Virtual environment, packages, Pulumi engine; does nothing where all is there
	@tools/setup

setup-docker: setup ## What the docker backend needs besides, where Pulumi cannot download it
	@$(activate) && python -m tools.provision docker

setup-languages: setup ## What programs in other languages than Python need besides, likewise
	@$(activate) && python -m tools.provision languages

mnist: setup ## The main job: train MNIST by `pulumi up`, print the outputs
	@$(activate) && tools/mnist

box: setup-docker ## EC2 in a box: prints what leads a shell there, until Ctrl-C
	@$(activate) && exec python -m tests.box --tensorflow

box-mnist: setup-docker ## The main job on EC2 in a box, by `pulumi up`, from the first machine to the last
	@$(activate) && exec python -m tests.box.mnist

pytest := python -m pytest --numprocesses=4 --dist=loadfile --no-loadscope-reorder --durations=15

test: setup-docker setup-languages check ## Checks, and the tests that show a clone to be sound
	@$(activate) && $(pytest) -m "not full"

test-rest: setup-docker setup-languages ## The tests that `make test` leaves out
	@$(activate) && $(pytest) -m full

test-all: ## All checks and every test
	@$(MAKE) test
	@$(MAKE) test-rest

check: setup ## Lint, format, types, import table
	@$(activate) && tools/check

bench: setup ## Benchmarks, as ratios against a peer in the same run
	@$(activate) && python -m bench

clean: ## Remove .venv and caches of this clone (what is cached for the user stays)
	@tools/clean
