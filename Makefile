SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

activate := source tools/activate

.PHONY: help setup setup-local setup-docker setup-ec2 setup-languages setup-tests mnist box box-mnist test test-rest test-all check bench clean

help: ## List the targets
	@sed -nE 's/^([a-z0-9-]+):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 17

setup: ## Virtual environment, packages of the local backend, Pulumi engine; does nothing where all is there
	@tools/setup local

setup-local: setup ## Another name of it

setup-docker: ## The same, and what the docker backend needs: its packages and Pulumi's docker provider
	@tools/setup local docker

setup-ec2: ## The same, and what EC2 needs: its packages and Pulumi's docker and AWS providers
	@tools/setup local ec2

setup-languages: ## What programs in other languages than Python need, where Pulumi does not bring it
	@tools/setup local languages

setup-tests: ## All that checks and tests need
	@tools/setup local docker languages tests

mnist: setup ## The main job: train MNIST by `pulumi up`, print the outputs
	@$(activate) && tools/mnist

box: setup-tests ## EC2 in a box: prints what leads a shell there, until Ctrl-C
	@$(activate) && exec python -m tests.box --tensorflow

box-mnist: setup-tests ## The main job on EC2 in a box, by `pulumi up`, from the first machine to the last
	@$(activate) && exec python -m tests.box.mnist

pytest := python -m pytest --numprocesses=4 --dist=loadfile --no-loadscope-reorder --durations=15

test: setup-tests ## Checks, and the tests that show a clone to be sound
	@$(activate) && python -m tests.engine.prepare && $(pytest) -m "not full"

test-rest: setup-tests ## The tests that `make test` leaves out
	@$(activate) && python -m tests.engine.prepare --all && $(pytest) -m full

test-all: ## Checks and every test
	@$(MAKE) test
	@$(MAKE) test-rest

check: setup-tests ## Lint, format, types, import table
	@$(activate) && tools/check && python -m pytest -q tests/unit/test_imports.py

bench: setup ## Benchmarks, as ratios against a peer in the same run
	@$(activate) && python -m bench

clean: ## Remove .venv and caches of this clone (what is cached for the user stays)
	@tools/clean
