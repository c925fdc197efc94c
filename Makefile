SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Each process that imports tfdeploy needs 0.2 s more where its modules are not compiled.
unexport PYTHONDONTWRITEBYTECODE

activate := source tools/activate

.PHONY: help setup setup-local setup-docker setup-ec2 setup-kubernetes setup-languages setup-tests setup-check mnist box box-mnist kube-mnist aws-smoke near test test-rest test-all features check snapshots pictures site bench clean

help: ## List the targets
	@sed -nE 's/^([a-z0-9-]+):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 17

setup: ## Install the virtual environment, the packages of the local backend, and Pulumi, unless they exist
	@tools/setup local

setup-local: setup ## The same as setup

setup-docker: ## Also install the packages of the docker backend, and Pulumi's docker provider
	@tools/setup local docker

setup-ec2: ## Also install the packages of the EC2 backend, and Pulumi's docker and AWS providers
	@tools/setup local ec2

setup-kubernetes: ## Also install the packages of the kubernetes backend
	@tools/setup local kubernetes

setup-languages: ## Also install what programs in other languages need, if Pulumi does not include it
	@tools/setup local languages

setup-tests: ## Install everything that tests need
	@tools/setup local docker languages tests

setup-check: ## Install the packages that `make check` needs
	@tools/setup check

mnist: setup ## Train MNIST by `pulumi up`, and print the outputs
	@$(activate) && tools/mnist

box: setup-tests ## Run EC2 in a box until Ctrl-C; prints the settings for a shell
	@$(activate) && exec python -m tests.box --tensorflow

box-mnist: setup-tests ## Train MNIST on EC2 in a box, by `pulumi up`, and remove everything
	@$(activate) && exec python -m pytest -q -s -m "" tests/box/test_mnist.py

kube-mnist: setup-tests ## Train MNIST on a Kubernetes of two nodes, by `pulumi up`, and remove everything
	@$(activate) && exec python -m pytest -q -s -m "" tests/kube/test_mnist.py

aws-smoke: setup-ec2 ## On AWS itself: create, use and destroy a small cluster (at most $$0.50), and write build/aws-smoke.txt
	@$(activate) && exec python -m tools.smoke $(OPTIONS)

# Programs in Go, which the tests start a thousand times, collect their memory less often.
pytest := GOGC=400 python -m pytest --numprocesses=4 --dist=loadfile --no-loadscope-reorder --durations=15

near: setup-check ## Run the unit tests that belong to a module, in seconds: make near FILE=tfdeploy/plan/scheduler.py
	@.venv/bin/python -m tools.near $(FILE)

test: setup-tests ## Run the tests that validate a clone
	@$(activate) && ruff check --quiet && ruff format --check --quiet && python -m tests.engine.prepare && $(pytest) -m "not full"

test-rest: setup-tests ## Run the tests that `make test` omits
	@$(activate) && python -m tests.engine.prepare --all && $(pytest) -m "full"

test-all: ## Run all tests
	@$(MAKE) test
	@$(MAKE) test-rest

features: setup-tests ## Run the tests of every feature, and print on which backend each ran and how it ended
	@$(activate) && python -m tests.engine.prepare --all && python -m tools.try_features env $(pytest)

check: setup-check ## Check format, lint, types, imports, and pages and files that are generated; no tests
	@tools/check

snapshots: setup-tests ## Renew the snapshots of errors, help, previews, events, diagnosis and tables; review the diff
	@$(activate) && RENEW_GOLDENS=1 python -m pytest -q tests/unit/test_snapshots.py

pictures: setup-tests ## Take the pictures of README and docs from a real training
	@$(activate) && exec python -m tests.integration.pictures

site: setup-tests ## Build the pages as a site, into build/site
	@$(activate) && python -m tools.site

bench: setup ## Run the benchmarks, ratios against a peer in the same run, and write bench/benchmarks.md
	@$(activate) && python -m bench

clean: ## Remove .venv and caches of this clone, but not the user's cache
	@tools/clean
