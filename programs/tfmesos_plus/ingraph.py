"""Where a client's servers are, and a session on one of them: what `from tfmesos import cluster` was for.

The servers are those that `--at` names; in a task, those beside it; else those of a cluster that is made for the client alone, and
taken away when the client has ended, however it did.
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
    asked = arguments(ps, workers)
    addresses = json.loads(asked.at) if asked.at else beside()
    if not addresses:
        return Alone(asked).run()
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
        help="servers that stand: hostname to host:port, as `pulumi stack output endpoints` says",
    )
    asked, others = parser.parse_known_args()
    if others and not beside():  # a task is given the four flags
        parser.error(f"unknown: {' '.join(others)}")
    return asked


def beside() -> dict[str, str]:
    """The servers of the cluster that this is a task of; none where it is none."""
    jobs = json.loads(os.environ.get("TF_CONFIG", "{}")).get("cluster", {})
    return {f"{job}-{index}": host for job in ("ps", "worker") for index, host in enumerate(jobs.get(job, []))}


def session(target: str, graph: Any = None) -> Any:
    """A session on a server, once it answers. The client itself is no server: nobody shall wait for it."""
    import tensorflow.compat.v1 as tf

    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker"], log_device_placement=True)
    deadline = time.monotonic() + START_WAIT
    while not answers(target, config):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{target} has not answered for {START_WAIT:g} s")
        time.sleep(0.5)
    return tf.Session(target, graph, config)


def answers(target: str, config: Any) -> bool:
    import tensorflow.compat.v1 as tf

    with tf.Graph().as_default(), tf.Session(target, config=config) as session:
        try:
            session.run(tf.constant(0))
        except tf.errors.UnavailableError:
            return False
    return True


class Alone:
    """A cluster for one run of one client, by Pulumi's Automation API, in a stack of its own."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.stack = f"{Path(sys.argv[0]).stem}-{secrets.token_hex(3)}"
        self.config = {"client": "none", "tfdeploy:ps": str(asked.ps), "tfdeploy:workers": str(asked.workers)}
        if asked.worker_gpus:
            self.config["tfdeploy:jobs"] = json.dumps({"worker": {"gpus": asked.worker_gpus}})
        for name, _, value in (item.partition("=") for item in asked.set):
            self.config[f"tfdeploy:{name}"] = value
        self.told = 0

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
            print("stopped while the cluster was made" if self.told else error, file=sys.stderr)
            code = 1
        return 128 + self.told if self.told else code

    def served(self, stack: Any) -> int:
        """Make the servers stand, and run the client; its exit code."""
        from pulumi import automation

        stack.set_all_config({name: automation.ConfigValue(value) for name, value in self.config.items()})
        if self.told:
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
            sys.exit(f"{error}\n{self.stack} stands: `pulumi destroy --stack {self.stack}` takes it away.")

    @contextmanager
    def reached(self, hostnames: list[str]) -> Iterator[dict[str, str]]:
        """The servers' addresses on this computer, through the way that leads to the cluster's engine."""
        command = ["tfdeploy", "tunnel", *hostnames, "--json", "-C", str(HERE), "-s", self.stack]
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
        """Run the client in a process of its own, which can be ended at any moment; its exit code."""
        client = subprocess.Popen([sys.executable, *sys.argv, "--at", json.dumps(addresses)], start_new_session=True)
        while client.poll() is None and not self.told:
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
        self.told = self.told or number
