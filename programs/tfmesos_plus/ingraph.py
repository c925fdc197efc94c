"""Where a client's servers are, and a session on one of them: what `from tfmesos import cluster` was for.

The servers are those that `--at` names; in a task, those of its cluster; else those of a cluster that is created for the client and
removed when the client has ended, in any way.
"""

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

Targets = dict[str, str]
"""Hostname (`worker-0`) to `grpc://host:port`."""

START_WAIT = 120.0
END_WAIT = 10.0
HERE = Path(__file__).parent


def main(client: Callable[[Targets], None], ps: int = 2, workers: int = 2) -> int:
    """Run a client; the exit code."""
    args = arguments(ps, workers)
    addresses = json.loads(args.at) if args.at else beside()
    if not addresses:
        return Alone(args).run()
    client({hostname: f"grpc://{address}" for hostname, address in addresses.items()})
    return 0


def arguments(ps: int, workers: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("-s", "--ps", type=int, default=ps, help=f"how many parameter servers ({ps})")
    add("-w", "--workers", type=int, default=workers, help=f"how many workers ({workers})")
    add("-Gw", "--worker-gpus", type=int, default=0, help="GPUs of each worker")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="any other argument of TensorFlowCluster")
    add(
        "--at",
        metavar="JSON",
        help="existing servers: hostname to host:port, as `pulumi stack output endpoints` prints",
    )
    args, others = parser.parse_known_args()
    if others and not beside():  # a task is given the four flags
        parser.error(f"unknown: {' '.join(others)}")
    return args


def beside() -> dict[str, str]:
    """The servers of the cluster that this is a task of; none where it is none."""
    jobs = json.loads(os.environ.get("TF_CONFIG", "{}")).get("cluster", {})
    return {f"{job}-{index}": host for job in ("ps", "worker") for index, host in enumerate(jobs.get(job, []))}


def session(target: str, graph: Any = None) -> Any:
    """A session on a server, once it responds. The client itself is not a server: no task waits for it."""
    import tensorflow.compat.v1 as tf

    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker"], log_device_placement=True)
    deadline = time.monotonic() + START_WAIT
    while not responds(target, config):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{target} has not responded for {START_WAIT:g} s")
        time.sleep(0.5)
    return tf.Session(target, graph, config)


def responds(target: str, config: Any) -> bool:
    import tensorflow.compat.v1 as tf

    with tf.Graph().as_default(), tf.Session(target, config=config) as session:
        try:
            session.run(tf.constant(0))
        except tf.errors.UnavailableError:
            return False
    return True


class Alone:
    """A cluster for one run of one client, by Pulumi's Automation API, in its own stack."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.stack = f"{Path(sys.argv[0]).stem}-{secrets.token_hex(3)}"
        self.config = {"client": "none", "tfdeploy:ps": str(args.ps), "tfdeploy:workers": str(args.workers)}
        if args.worker_gpus:
            self.config["tfdeploy:jobs"] = json.dumps({"worker": {"gpus": args.worker_gpus}})
        for name, _, value in (item.partition("=") for item in args.set):
            self.config[f"tfdeploy:{name}"] = value
        self.received_signal = 0

    def run(self) -> int:
        from pulumi import automation

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.hear)
        try:
            stack = automation.create_stack(self.stack, work_dir=str(HERE))
            try:
                code = self.served(stack)
            finally:
                self.remove(stack)
        except automation.CommandError as error:
            print("stopped while the cluster was made" if self.received_signal else error, file=sys.stderr)
            code = 1
        return 128 + self.received_signal if self.received_signal else code

    def served(self, stack: Any) -> int:
        """Create the servers, and run the client; returns its exit code."""
        from pulumi import automation

        stack.set_all_config({name: automation.ConfigValue(value) for name, value in self.config.items()})
        if self.received_signal:
            return 1
        endpoints = stack.up().outputs["endpoints"].value
        with self.reached(list(endpoints)) as addresses:
            return self.drive(addresses)

    def remove(self, stack: Any) -> None:
        from pulumi import automation

        try:
            stack.destroy()
            stack.workspace.remove_stack(self.stack)
        except automation.CommandError as error:
            sys.exit(f"{error}\n{self.stack} still exists: `pulumi destroy --stack {self.stack}` removes it.")

    @contextmanager
    def reached(self, hostnames: list[str]) -> Iterator[dict[str, str]]:
        """The servers' addresses on this computer, through the way that leads to the cluster's engine."""
        command = ["tfdeploy", "port-forward", *hostnames, "--json", "-C", str(HERE), "-s", self.stack]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
            assert process.stdout is not None
            text = ""
            for line in iter(process.stdout.readline, ""):
                text += line
                if line == "}\n":
                    break
            try:
                yield json.loads(text)
            finally:
                process.terminate()

    def drive(self, addresses: dict[str, str]) -> int:
        """Run the client in its own process, which can be stopped at any moment; returns its exit code."""
        client = subprocess.Popen([sys.executable, *sys.argv, "--at", json.dumps(addresses)], start_new_session=True)
        while client.poll() is None and not self.received_signal:
            time.sleep(0.1)
        client.terminate()
        try:
            code = client.wait(END_WAIT)
        except subprocess.TimeoutExpired:
            client.kill()
            code = client.wait()
        return code if code >= 0 else 128 - code

    def hear(self, number: int, _: FrameType | None) -> None:
        # No more than this: Pulumi, at work below, hears Ctrl-C by itself.
        self.received_signal = self.received_signal or number
